/** The worker thread that explains signatures, one after the other. */

import { parentPort, workerData } from 'node:worker_threads'
import { explainSignature } from '../../../message/explain/explain-signature.ts'

/** What the thread gets of a request. It answers with the explanation. */
export interface Mismatched {
  readonly body: Uint8Array
  readonly signature: string
}

parentPort?.on('message', ({ body, signature }: Mismatched) => {
  parentPort?.postMessage(explainSignature(body, signature, workerData))
})
