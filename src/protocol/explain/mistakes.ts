/** Computes the signatures that a receiver with one mistake would expect: each deviation that `explainSignature` tries is a mistake. */

import { sign } from '../signature.ts'
import type { SignatureCauseCode } from './causes.ts'
import { BODY_CHANGES, HMAC, readBody, SECRET_CHANGES, toBuffer, WRONG_DIGESTS } from './deviations.ts'
import { readJsonText } from './json-text.ts'
import { rewrite, WRITERS } from './json-writers.ts'

export interface Mistake {
  readonly code: SignatureCauseCode
  /** The serialiser that writes the body again, with its settings; undefined for any other mistake. */
  readonly writer?: string
  /** Returns the signature that a receiver with this mistake expects, or undefined if the mistake does not apply to these values. */
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
