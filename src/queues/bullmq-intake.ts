/** Puts jobs in: pushes that come while others are on their way go together. */

import type { Queue as Engine } from 'bullmq'
import type { Clock } from '../protocol/clock.ts'
import type { Connection } from './bullmq-connection.ts'
import { toBulk } from './bullmq-job.ts'
import type { Job } from './queue.ts'

interface Push {
  readonly jobs: readonly Job[]
  /** By the clock's `monotonic`. */
  readonly since: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** What puts jobs in. */
export interface Intake {
  /** Resolves when Redis has them. */
  push(jobs: readonly Job[]): Promise<void>
  /** Resolves when nothing is on its way. */
  rest(): Promise<void>
}

/** Makes it. Ids that were done longer ago than `knownForMs` are forgotten on the way. */
export function createIntake(engine: Engine, connection: Connection, knownForMs: number, clock: Clock): Intake {
  const waiting: Push[] = []
  let underWay = 0
  let isPlanned = false
  let forgottenAt = Number.NEGATIVE_INFINITY
  let resting: (() => void)[] = []

  function plan(): void {
    if (isPlanned || underWay >= MOST_UNDER_WAY || waiting.length === 0) return
    isPlanned = true
    queueMicrotask(() => {
      isPlanned = false
      void go(take())
      plan()
    })
  }

  /** Whole pushes, the oldest first. */
  function take(): Push[] {
    let [count, jobs] = [0, 0]
    while (count < waiting.length && jobs < MOST_JOBS) {
      jobs += (waiting[count] as Push).jobs.length
      count += 1
    }
    return waiting.splice(0, count)
  }

  async function go(pushes: readonly Push[]): Promise<void> {
    underWay += 1
    try {
      await add(pushes)
      for (const { resolve } of pushes) resolve()
    } catch (error) {
      await refuse(pushes, error)
    }
    underWay -= 1
    plan()
    if (underWay > 0 || waiting.length > 0) return
    for (const resolve of resting) resolve()
    resting = []
  }

  async function add(pushes: readonly Push[]): Promise<void> {
    const now = clock.now()
    const jobs = pushes.flatMap((push) => push.jobs.map((job) => toBulk(job, now)))
    await connection.call(() => {
      forget(now)
      return engine.addBulk(jobs)
    }, pushes[0]?.since)
  }

  /** A push that Redis refuses takes nobody along: the others are tried without it. */
  async function refuse(pushes: readonly Push[], error: unknown): Promise<void> {
    const [first] = pushes
    if (first === undefined) return
    if (pushes.length === 1 || !isReply(error)) {
      for (const { reject } of pushes) reject(error)
      return
    }
    await Promise.all(pushes.map((push) => add([push]).then(push.resolve, push.reject)))
  }

  /** BullMQ forgets the done only when others become so. */
  function forget(now: number): void {
    if (now - forgottenAt < FORGET_EVERY_MS && now >= forgottenAt) return
    forgottenAt = now
    engine.clean(knownForMs, MOST_FORGOTTEN, 'completed').catch(() => {}) // The next one will.
  }

  return {
    push(jobs) {
      return new Promise((resolve, reject) => {
        waiting.push({ jobs, since: clock.monotonic(), resolve, reject })
        plan()
      })
    },
    rest() {
      if (underWay === 0 && waiting.length === 0) return Promise.resolve()
      return new Promise((resolve) => resting.push(resolve))
    },
  }
}

/** Whether Redis answered, and with an error. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof Error && error.cause.name === 'ReplyError'
}

const MOST_UNDER_WAY = 4
/** Of one round trip; a push that has more goes whole. */
const MOST_JOBS = 500
const FORGET_EVERY_MS = 1_000
const MOST_FORGOTTEN = 1_000
