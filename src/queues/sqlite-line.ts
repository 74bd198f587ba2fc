/** The line of commands to the thread that keeps the file: what comes while it is busy goes together. */

import { HooklineError } from '../protocol/error.ts'
import type { Answer, Answers, Command } from './sqlite-commands.ts'

/** Who carries commands out, one batch after another. */
export interface Bearer {
  send(commands: readonly Command[]): void
  /** Ends it, when it has carried out what it was sent. */
  end(): Promise<void>
}

/** What a bearer tells. */
export interface BearerEvents {
  /** What came of the batch that was sent. */
  answered(answers: readonly Answer[]): void
  /** It ended by itself: what it was sent may be done or not. */
  died(error: unknown): void
}

/** How to make a line. */
export interface LineOptions {
  readonly name: string
  readonly start: (events: BearerEvents) => Bearer
  readonly onError: (error: unknown) => void
}

/** The line. */
export interface Line {
  /**
   * Has a command carried out.
   *
   * @throws HooklineError (as a rejection) `queue_unavailable`, `queue_full`.
   */
  ask<C extends Command>(command: C): Promise<Answers[C['kind']]>
  /** Ends the bearer whenever nothing is to do; one that is needed after all is started. */
  retire(): Promise<void>
}

interface Waiting {
  readonly command: Command
  readonly resolve: (value: never) => void
  readonly reject: (error: HooklineError) => void
}

/** Makes it. The bearer is started when there is something to do. */
export function createLine({ name, start, onError }: LineOptions): Line {
  let waiting: Waiting[] = []
  let sent: readonly Waiting[] = []
  let bearer: Bearer | undefined
  let isPlanned = false
  let retired: PromiseWithResolvers<void> | undefined

  const unavailable = (reason: string): HooklineError =>
    new HooklineError('queue_unavailable', `The queue ${name} cannot be reached: ${reason}.`)

  function plan(): void {
    if (isPlanned || sent.length > 0 || waiting.length === 0) return
    isPlanned = true
    queueMicrotask(send)
  }

  function send(): void {
    isPlanned = false
    sent = waiting.slice(0, MOST_AT_A_TIME)
    waiting = waiting.slice(MOST_AT_A_TIME)
    bearer ??= start({ answered, died })
    bearer.send(sent.map(({ command }) => command))
  }

  function answered(answers: readonly Answer[]): void {
    const batch = sent
    sent = []
    for (const [index, { resolve, reject }] of batch.entries()) {
      const answer = answers[index] as Answer
      if ('value' in answer) resolve(answer.value as never)
      else if ('full' in answer) reject(full(name))
      else reject(unavailable(`SQLite says ${answer.failed}`))
    }
    goOn()
  }

  function died(error: unknown): void {
    const batch = sent
    sent = []
    bearer = undefined
    for (const { reject } of batch) reject(unavailable('its thread ended'))
    onError(error)
    goOn()
  }

  function goOn(): void {
    plan()
    if (retired !== undefined && sent.length === 0 && waiting.length === 0) end(retired.resolve)
  }

  function end(then: () => void): void {
    const last = bearer
    bearer = undefined
    if (last === undefined) then()
    else void last.end().then(then)
  }

  return {
    ask: (command) =>
      new Promise((resolve, reject) => {
        waiting.push({ command, resolve, reject })
        plan()
      }),
    retire() {
      retired = Promise.withResolvers()
      goOn()
      return retired.promise
    },
  }
}

/** Jobs and settlements in one transaction: others wait that long. */
const MOST_AT_A_TIME = 1_000

function full(name: string): HooklineError {
  return new HooklineError('queue_full', `The queue ${name} would go over its maxJobs. Push again later, or raise it.`)
}
