/** What a queue on BullMQ can be told, checked once and loudly. */

import type { Redis, RedisOptions } from 'ioredis'
import { HooklineError } from '../protocol/error.ts'
import { refuseUnknown, requireFunction, requireText, requireWhole } from '../protocol/options.ts'
import { printOurFaults, tell } from '../protocol/report.ts'

/** What `bullmqQueue` takes. */
export interface BullmqQueueOptions {
  /** The queue's name in Redis, without a colon: BullMQ keeps its jobs under `<prefix>:<name>:`. */
  readonly name: string
  /**
   * Where Redis is: a URL that begins with redis:// or rediss://, options of ioredis, or an instance of it. An instance
   * stays yours to close; what works on the queue takes connections of its own, copied from it. The type admits
   * undefined so that `process.env.X` compiles; a missing connection is a TypeError.
   */
  readonly connection: string | RedisOptions | Redis | undefined
  /** What the keys begin with. Default `bull`, as in BullMQ. */
  readonly prefix?: string
  /**
   * How long a job stays with a process that died, in milliseconds: until another looks for it, up to as long again.
   * BullMQ renews the lease while the handler runs. Default 60 000.
   */
  readonly leaseMs?: number
  /** How long the id of a job that is done stays known, in milliseconds. Default 24 hours. */
  readonly knownForMs?: number
  /** How long a call waits for Redis, in milliseconds, until it is `queue_unavailable`. Default 3 000. */
  readonly commandTimeoutMs?: number
  /**
   * Sees what goes wrong with Redis while nobody waits for it, each time: a connection that is lost tells of every attempt to
   * make it again. Default: `console.error`, of the same fault once a minute.
   */
  readonly onError?: (error: HooklineError) => unknown
}

/** The options, complete. */
export interface BullmqSettings extends Required<Omit<BullmqQueueOptions, 'connection' | 'onError'>> {
  readonly connection: Where
  readonly onError: (error: unknown) => void
}

type Where = NonNullable<BullmqQueueOptions['connection']>

const KNOWN = [
  'name',
  'connection',
  'prefix',
  'leaseMs',
  'knownForMs',
  'commandTimeoutMs',
  'onError',
] as const satisfies (keyof BullmqQueueOptions)[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option, and never quotes a URL.
 */
export function readOptions(options: BullmqQueueOptions): BullmqSettings {
  if (typeof options !== 'object' || options === null) throw new TypeError('bullmqQueue: its options are an object.')
  refuseUnknown(options, KNOWN)
  const { name, connection, prefix = 'bull', leaseMs = 60_000, knownForMs = 24 * 60 * 60_000 } = options
  const { commandTimeoutMs = 3_000, onError = printNowAndThen() } = options
  requireText('name', name)
  if (name.includes(':')) throw new TypeError('name: must hold no colon.')
  requireConnection(connection)
  requireText('prefix', prefix)
  requireFunction('onError', onError)
  return {
    name,
    connection,
    prefix,
    leaseMs: requireWhole('leaseMs', leaseMs, 100),
    knownForMs: requireWhole('knownForMs', knownForMs, 1, Number.MAX_SAFE_INTEGER),
    commandTimeoutMs: requireWhole('commandTimeoutMs', commandTimeoutMs, 1),
    onError: (error) => tell(() => onError(toFault(name, error)), 'onError', 'HOOKLINE_ON_ERROR'),
  }
}

/** Whether this is an instance of ioredis, of whichever copy of it. */
export function isInstance(connection: Where): connection is Redis {
  return typeof connection === 'object' && 'duplicate' in connection && typeof connection.duplicate === 'function'
}

/** An error of Redis without the command it names: there are passwords and bodies in it. */
export function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error) || !('command' in error)) return error
  const { name, message, stack = '' } = error
  return Object.assign(new Error(message), { name, stack })
}

function requireConnection(connection: unknown): asserts connection is Where {
  if (typeof connection === 'string') {
    const protocol = URL.parse(connection)?.protocol ?? ''
    if (/^rediss?:$/.test(protocol)) return
    throw new TypeError('connection: must be a full URL that begins with redis:// or rediss://.')
  }
  if (typeof connection === 'object' && connection !== null) return
  throw new TypeError('connection: must be a URL, options of ioredis, or an instance of it.')
}

function toFault(name: string, error: unknown): HooklineError {
  const why = error instanceof Error ? error.message : 'it does not say why'
  const message = `The queue ${name} has trouble with Redis: ${why}.`
  return new HooklineError('queue_unavailable', message, { cause: withoutCommand(error) })
}

/** Prints a fault, and the same one not again before a minute has passed. */
function printNowAndThen(): (error: HooklineError) => void {
  let last = { message: '', at: 0 }
  return (error) => {
    const now = performance.now()
    if (error.message === last.message && now - last.at < QUIET_MS) return
    last = { message: error.message, at: now }
    printOurFaults(error)
  }
}

const QUIET_MS = 60_000
