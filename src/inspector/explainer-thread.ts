/** The worker thread that explains signatures, one after the other. */

import { parentPort } from 'node:worker_threads'
import { explain } from '../message/explain/explain-signature.ts'

/** A tenth of a second's worth, of a body and a signature that a stranger chose. */
const MAX_WORK = 40_000_000

export interface Question {
  readonly body: Uint8Array
  readonly signature: string | undefined
  readonly secret: string
}

parentPort?.on('message', ({ body, signature, secret }: Question) => {
  parentPort?.postMessage(explain(body, signature, secret, MAX_WORK))
})
