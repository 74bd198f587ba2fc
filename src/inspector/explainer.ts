/** Explains signatures in a thread of its own, one after the other: an explanation of a large body takes a second. */

import { Worker } from 'node:worker_threads'
import type { SignatureExplanation } from '../message/explain/explain-signature.ts'
import { BODY_LIMIT } from '../message/limits.ts'
import type { Question } from './explainer-thread.ts'

export interface Explainer {
  /**
   * Explains why a signature does not match. Resolves to undefined for a body that is too large, while too many wait, when the
   * thread ends before it has answered, and once closed. Never rejects.
   */
  explain(body: Uint8Array, signature: string | undefined, secret: string): Promise<SignatureExplanation | undefined>
  close(): Promise<void>
}

/**
 * Creates an explainer. Its thread starts with the first signature, and does not keep the process.
 *
 * @param maxWaiting The most signatures that wait while one is explained.
 */
export function createExplainer(maxWaiting = 20): Explainer {
  let worker: Worker | undefined
  let asked: ((explanation: SignatureExplanation | undefined) => void)[] = [] // The thread answers in this order.
  let isClosed = false

  function start(): Worker {
    const started = new Worker(new URL(threadFile(), import.meta.url))
    started.on('message', (explanation) => asked.shift()?.(explanation))
    started.on('error', () => {}) // It ends next.
    started.on('exit', () => {
      worker = undefined
      for (const resolve of asked) resolve(undefined)
      asked = []
    })
    started.unref()
    return started
  }

  return {
    async explain(body, signature, secret) {
      if (isClosed || body.length > BODY_LIMIT || asked.length > maxWaiting) return undefined
      worker ??= start()
      const bytes = new Uint8Array(body) // A view would take along all that it is a view of.
      worker.postMessage({ body: bytes, signature, secret } satisfies Question, [bytes.buffer])
      return new Promise((resolve) => asked.push(resolve))
    },
    async close() {
      isClosed = true // A thread that starts now would not keep the process until it has answered.
      await worker?.terminate()
    },
  }
}

/** Beside the sources, or beside the file that they are built into. */
function threadFile(): string {
  return import.meta.url.endsWith('.ts') ? './explainer-thread.ts' : './explainer-thread.js'
}
