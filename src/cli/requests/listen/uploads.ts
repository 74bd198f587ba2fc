/** Reads the body of a request, up to the limit. */

import type { IncomingMessage } from 'node:http'
import { DISCARD_LIMIT, DISCARD_MS } from '../../../message/limits.ts'
import { BODY_LIMIT } from '../kept.ts'

/** A body as far as it came. */
export interface Upload {
  /** At most the limit. */
  readonly body: Buffer
  /** How many bytes came. */
  readonly size: number
  readonly end: 'whole' | 'too_large' | 'aborted'
}

/**
 * Reads a body. Of one over the limit it reads a little more, and drops it: a sender that is cut off while it writes would
 * see a reset instead of the answer. Never rejects.
 */
export function readUpload(request: IncomingMessage): Promise<Upload> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    let timer: NodeJS.Timeout | undefined
    const end = (how: Upload['end']): void => {
      clearTimeout(timer)
      resolve({ body: Buffer.concat(chunks), size, end: how })
    }
    const isAnnounced = Number(request.headers['content-length']) > BODY_LIMIT
    const isTooLarge = (): boolean => isAnnounced || size > BODY_LIMIT
    const refuseSoon = (): void => {
      timer ??= setTimeout(() => end('too_large'), DISCARD_MS)
      if (size > BODY_LIMIT + DISCARD_LIMIT) end('too_large')
    }

    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_LIMIT) chunks.push(chunk)
      else refuseSoon()
    })
    request.on('end', () => end(isTooLarge() ? 'too_large' : 'whole'))
    request.on('close', () => end(isTooLarge() ? 'too_large' : 'aborted')) // Has no effect after the end.
    request.on('error', () => {}) // It closes next.
    if (isAnnounced) refuseSoon()
  })
}
