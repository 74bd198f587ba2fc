/** The id of a job: 36 characters outside, 16 bytes in the file. */

/** Of a UUID in lower case. */
export function bytesOfId(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

/** @throws Error for what is no id. */
export function textOfId(bytes: unknown): string {
  if (!(bytes instanceof Uint8Array) || bytes.byteLength !== 16) throw new Error('its id is none')
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
