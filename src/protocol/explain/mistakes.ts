/** The signatures that receivers with one mistake expect: the deviations that an explanation tries, each applied to a right signature. */

import { sign } from '../signature.ts'
import type { SignatureCauseCode } from './causes.ts'
import { BODY_CHANGES, HMAC, readBody, SECRET_CHANGES, toBuffer, WRONG_DIGESTS } from './deviations.ts'
import { readJsonText } from './json-text.ts'
import { rewrite, WRITERS } from './json-writers.ts'

export interface Mistake {
  readonly code: SignatureCauseCode
  /** The serialiser that writes the body again, with its settings. */
  readonly writer?: string
  /** Signs as a receiver with this mistake expects it: correctly if the mistake changes nothing; undefined if it does not apply. */
  sign(body: Buffer, secret: string): string | undefined
}

export const MISTAKES: readonly Mistake[] = [
  ...WRONG_DIGESTS.map(({ code, compute }) => ({
    code,
    sign: (body: Buffer, secret: string) => compute('sha1', Buffer.from(secret), body),
  })),
  ...SECRET_CHANGES.map(([code, change]) => ({
    code,
    sign(body: Buffer, secret: string) {
      const key = Buffer.from(change(secret) ?? '')
      return key.length === 0 ? undefined : HMAC.compute('sha1', key, body)
    },
  })),
  ...BODY_CHANGES.map(({ code, change }) => ({
    code,
    sign(body: Buffer, secret: string) {
      const signed = change(readBody(body))
      return signed === undefined ? undefined : sign(toBuffer(signed), secret)
    },
  })),
  ...WRITERS.map((writer) => ({
    code: 'body_reserialised' as const,
    writer: writer.name,
    sign(body: Buffer, secret: string) {
      const json = readJsonText(body.toString())
      const text = json && rewrite(json, writer)
      return text === undefined ? undefined : sign(text, secret)
    },
  })),
]
