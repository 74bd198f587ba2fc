/** Returns whether this runtime is workerd, which lacks the sockets of Node.js, and ends each timer with the request that set it. */
export function isWorkerd(): boolean {
  return globalThis.navigator?.userAgent === 'Cloudflare-Workers'
}
