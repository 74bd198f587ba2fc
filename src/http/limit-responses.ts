/** Limits what a server may send in return for one request, and skips its informational responses. */

import type { Socket } from 'node:net'

/** How many bytes may arrive for each byte of a body that is read: in a chunk of its own, a byte takes six. */
const BYTES_PER_BODY_BYTE = 8

const HEAD_LIMIT = 16 * 1024

/** How an informational response begins. HTTP/1.0 has none (RFC 9110, section 15.2). */
const INFORMATIONAL = 'HTTP/1.1 1'
/** The one that is not followed by a final response: an error, as nothing asked for it. */
const SWITCHING_PROTOCOLS = 'HTTP/1.1 101'
const FIRST_DIGIT = '1'.charCodeAt(0)
const END_OF_HEAD = '\r\n\r\n'

const NOTHING = Buffer.alloc(0)

const TOO_LONG = Object.assign(new Error('a response without an end'), { code: 'HOOKLINE_RESPONSE_TOO_LONG' })

/**
 * Changes what undici reads of a connection. By itself undici ends the connection at a `100 Continue` that it did not
 * ask for, which a client must accept, and limits neither informational responses nor the bytes of a status text and of
 * chunk extensions.
 */
export function limitResponses<Connection extends Socket>(socket: Connection, bodyLimit: number): Connection {
  const { read, write } = socket
  const limit = bodyLimit * BYTES_PER_BODY_BYTE
  let received = 0
  let head: Buffer | undefined // What has arrived of an informational head; undefined within a final response.

  /** Whatever is written belongs to a request whose response is still to come. */
  function writeRequest(...args: Parameters<typeof write>): boolean {
    received = 0
    head ??= NOTHING
    return write.apply(socket, args)
  }

  function readFinal(size?: number): Buffer | null {
    for (let chunk: Buffer | null = read.call(socket, size); chunk !== null; chunk = read.call(socket, size)) {
      received += chunk.length
      if (head !== undefined) chunk = skipInformational(head === NOTHING ? chunk : Buffer.concat([head, chunk]))
      head = head !== undefined && mayBeInformational(chunk) ? chunk : undefined
      if (received > limit || (head !== undefined && head.length > HEAD_LIMIT)) socket.destroy(TOO_LONG)
      else if (head === undefined) return chunk
    }
    return null
  }

  return Object.assign(socket, { read: readFinal, write: writeRequest })
}

function skipInformational(bytes: Buffer): Buffer {
  let rest = bytes
  while (mayBeInformational(rest)) {
    const end = rest.indexOf(END_OF_HEAD)
    if (end === -1) break
    rest = rest.subarray(end + END_OF_HEAD.length)
  }
  return rest
}

function mayBeInformational(bytes: Buffer): boolean {
  const digit = bytes[INFORMATIONAL.length - 1]
  if (digit !== undefined && digit !== FIRST_DIGIT) return false // Nearly every response.
  const start = bytes.toString('latin1', 0, SWITCHING_PROTOCOLS.length)
  return INFORMATIONAL.startsWith(start.slice(0, INFORMATIONAL.length)) && start !== SWITCHING_PROTOCOLS
}
