/** Says why signatures do not match: in a thread of its own, and only so many that requests never wait for it. */

import { Worker } from 'node:worker_threads'
import { causeOf } from '../../../message/explain/causes.ts'
import type { SignatureExplanation } from '../../../message/explain/explain-signature.ts'
import { SHOWN_DIGITS } from '../kept.ts'
import type { Mismatched } from './explainer-thread.ts'

/** Explains signatures. */
export interface Explainer {
  /** In a sentence or two; of a large body, and in a flood of requests, without the cause. Never rejects. */
  explain(id: string, body: Uint8Array, signature: string | undefined): Promise<string> | string
  /** Ends the thread. What is asked for afterwards has no cause. */
  close(): Promise<void>
}

/** A larger body takes more than half a second. */
const LARGEST = 100_000
/** Of each second. One of a small body takes a tenth of a second. */
const MOST_A_SECOND = 5
/** The most characters of a reason: names of serialisers are many. */
const LONGEST = 300

interface Waiting {
  readonly unexplained: string
  resolve(reason: string): void
}

/** Creates an explainer. Its thread starts with the first signature. */
export function createExplainer(secret: string): Explainer {
  let worker: Worker | undefined
  let waiting: Waiting[] = [] // The thread answers in this order.
  let [second, count] = [0, 0]
  let isClosed = false

  function start(): Worker {
    const started = new Worker(new URL(threadFile(), import.meta.url), { workerData: secret })
    started.on('message', (explanation) => waiting.shift()?.resolve(inShort(explanation)))
    started.on('error', () => {}) // It ends next.
    started.on('exit', () => {
      worker = undefined
      for (const { unexplained, resolve } of waiting) resolve(unexplained)
      waiting = []
    })
    started.unref()
    return started
  }

  function isFree(): boolean {
    const now = performance.now()
    if (now - second > 1_000) [second, count] = [now, 0]
    if (count >= MOST_A_SECOND || waiting.length >= MOST_A_SECOND) return false
    count += 1
    return true
  }

  return {
    explain(id, body, signature) {
      if (signature === undefined) return firstSentences(causeOf('signature_missing').message, 2)
      const unexplained = `The signature does not match. \`hookline show ${id.slice(0, SHOWN_DIGITS)}\` explains it.`
      if (isClosed || body.length > LARGEST || !isFree()) return unexplained
      worker ??= start()
      worker.postMessage({ body, signature } satisfies Mismatched)
      return new Promise((resolve) => waiting.push({ unexplained, resolve }))
    },
    async close() {
      isClosed = true // A thread that starts now would not keep the process until it has answered.
      await worker?.terminate()
    },
  }
}

/** What must be so and what was found, of the first cause; the codes of the others. */
function inShort({ verdict, message, causes: [first, ...others] }: SignatureExplanation): string {
  if (verdict !== 'explained' || first === undefined) return firstSentences(message, 1)
  return [firstSentences(first.message, 2), ...others.map(({ code }) => `Also ${code}.`)].join(' ')
}

function firstSentences(text: string, count: number): string {
  return text
    .split(/(?<=\.) /, count)
    .join(' ')
    .slice(0, LONGEST)
}

/** Beside the sources, or beside the file that they are built into. */
function threadFile(): string {
  return import.meta.url.endsWith('.ts') ? './explainer-thread.ts' : './cli-explainer-thread.js'
}
