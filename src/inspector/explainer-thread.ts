/** The worker thread that explains signatures, one after the other. */

import { parentPort } from 'node:worker_threads'
import { explainSignature } from '../message/explain/explain-signature.ts'

export interface Question {
  readonly body: Uint8Array
  readonly signature: string | undefined
  readonly secret: string
}

parentPort?.on('message', ({ body, signature, secret }: Question) => {
  parentPort?.postMessage(explainSignature(body, signature, secret))
})
