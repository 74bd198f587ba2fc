/** Returns whether this runtime is workerd, which lacks Node's sockets, and ends each timer with the request that set it. */
export function isWorkerd(): boolean {
  return globalThis.navigator?.userAgent === 'Cloudflare-Workers'
}
