/**
 * Wraps a queue so that bodies, retry states and notes are encrypted at rest. Ids, times, reasons and groups stay in plain text. To seal a
 * value means to encrypt it and to bind it to its job, so that it cannot be opened for another job.
 */

import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { isUint8Array } from 'node:util/types'
import { invalidOption, kindOf, requireOptions, show } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { createWarning } from '../kit/warning.ts'
import { describeError, HooklineError } from '../protocol/error.ts'
import { isFilter } from './arguments.ts'
import { changeStored } from './drop.ts'
import type { ChangeBytes, ClaimedJob, HandleJob, Queue, Room, StoredBytes, WorkOptions } from './queue-types.ts'

/** A key that encrypts what a queue stores. */
export interface EncryptionKey {
  /**
   * The name of the key, which is stored in plain text with each value that the key encrypts: 1 to 40 of the characters `A-Za-z0-9._:/-`.
   */
  readonly id: string
  /**
   * The key: 32 random bytes, or a function that returns the bytes or a promise of them, for example from a KMS. The function is called
   * when the key is first needed, and again after a failure. While the function fails, pushes reject with `queue_unavailable`, and messages
   * wait.
   */
  readonly key: Uint8Array | (() => Uint8Array | Promise<Uint8Array>)
}

/** The keys with which a queue encrypts messages, their retry states and the history. */
export interface EncryptionOptions {
  /** The first key encrypts. Each key decrypts the values that it encrypted. */
  readonly keys: readonly EncryptionKey[]
}

interface Key {
  readonly id: string
  /** The first bytes of each value that this key seals. */
  readonly head: Buffer
  readonly readKey: () => unknown
  object?: KeyObject
  loading?: Promise<void> | undefined
}

/** The first byte of a sealed value. UTF-8 text never contains this byte, so no plain envelope or JSON begins with it. */
const SEALED = 0xff
const VERSION = 1
const [KEY_BYTES, IV_BYTES, TAG_BYTES] = [32, 12, 16]
const ALGORITHM = 'aes-256-gcm'
const TAG = { authTagLength: TAG_BYTES }
const ASK_AGAIN_MS = 1_000

const UNKNOWN_FORM =
  'The message is encrypted in a format that this release of Hookline does not know. Redrive the message with the release that stored it, or drop it.'

/** Returns the id of the key that sealed a value; undefined for a plain value. */
export function sealedWith(bytes: Uint8Array | undefined): string | undefined {
  if (bytes?.[0] !== SEALED || bytes[1] !== VERSION) return undefined
  return Buffer.from(bytes.subarray(3, 3 + (bytes[2] ?? 0))).toString()
}

/**
 * Creates the error for a value that this process has no key for.
 *
 * @param keyId The id of the missing key; undefined if this release does not know the format of the value.
 */
export function sealedError(keyId: string | undefined): HooklineError {
  const listed = `The message is encrypted with key ${show(keyId)}, which is not in \`encryption.keys\`. Add the key there, then redrive the message.`
  return new HooklineError('internal', keyId === undefined ? UNKNOWN_FORM : listed)
}

export type Seals = ReturnType<typeof createSeals>

/** Creates the functions that seal and open values with these keys. The keys never appear in any output. */
function createSeals(name: string, options: EncryptionOptions) {
  const keys = readKeys(name, options)
  const [first] = keys
  const isCurrent = (bytes: Uint8Array): boolean => sealedWith(bytes) === first.id

  /**
   * Seals a value with the first key. Empty bytes stay empty, to save space: most notes are empty. Does not change a
   * value that is not bytes, so that the queue refuses it.
   */
  const seal: ChangeBytes = (kind, id, bytes) => {
    if (first.object === undefined)
      throw new Error('The first key is not loaded. Wait for `waitToSeal` before sealing a value.')
    if (!isUint8Array(bytes) || bytes.length === 0) return bytes
    const iv = newIv()
    const cipher = createCipheriv(ALGORITHM, first.object, iv, TAG).setAAD(placeOf(kind, id))
    const sealed = cipher.update(bytes)
    cipher.final() // In this cipher mode, `final` returns no bytes.
    return Buffer.concat([first.head, iv, sealed, cipher.getAuthTag()])
  }

  /**
   * Opens a sealed value. Returns a plain value unchanged.
   *
   * @throws HooklineError that says what to do.
   */
  const unseal: ChangeBytes = (kind, id, bytes) => {
    if (bytes[0] !== SEALED) return bytes
    const key = keys.find(({ head }) => head.equals(bytes.subarray(0, head.length)))
    if (key?.object === undefined) throw sealedError(sealedWith(bytes))
    const head = key.head.length
    const [start, end] = [head + IV_BYTES, bytes.length - TAG_BYTES]
    try {
      const decipher = createDecipheriv(ALGORITHM, key.object, bytes.subarray(head, start), TAG)
      decipher.setAAD(placeOf(kind, id)).setAuthTag(bytes.subarray(end))
      const opened = decipher.update(bytes.subarray(start, end))
      decipher.final()
      return opened
    } catch {
      const text = `The message cannot be decrypted with key ${show(key.id)}: its data, its id or the key was changed. Undo the change and redrive the message, or drop the message.`
      throw new HooklineError('internal', text)
    }
  }

  const tryOpen: ChangeBytes = (...value) => {
    try {
      return unseal(...value)
    } catch {
      return value[2]
    }
  }

  const reseal: ChangeBytes = (kind, id, bytes) => {
    const opened = isCurrent(bytes) ? bytes : tryOpen(kind, id, bytes)
    return opened[0] === SEALED ? bytes : seal(kind, id, opened)
  }

  return {
    ...{ isCurrent, seal, open: unseal, tryOpen, reseal },
    canSeal: () => first.object !== undefined,
    /** Returns whether all keys are loaded. */
    canOpen: () => keys.every(({ object }) => object !== undefined),
    /**
     * Resolves when all keys are loaded; rejects with `queue_unavailable` if one cannot be loaded. `waitToSeal` does the same for the first
     * key only.
     */
    waitToOpen: async () => void (await Promise.all(keys.map(load))),
    waitToSeal: () => load(first),
  }
}

/**
 * Reads the encryption options of a queue. Returns undefined without options.
 *
 * @throws TypeError that names the invalid option.
 */
export function readSeals(name: string, options: EncryptionOptions | undefined): Seals | undefined {
  return options === undefined ? undefined : createSeals(name, options)
}

function readKeys(name: string, options: EncryptionOptions): [Key, ...Key[]] {
  requireOptions(name, options, ['keys'])
  const given: unknown = options.keys
  const keys = Array.isArray(given) ? given.map((key, index) => readKey(`${name}.keys[${index}]`, key)) : []
  const [first, ...others] = keys
  const again = keys.findIndex(({ id }, index) => keys.findIndex((key) => key.id === id) < index)
  if (again >= 0)
    throw new TypeError(`\`${name}.keys[${again}].id\` is also the id of another key. Give each key its own id.`)
  if (first !== undefined) return [first, ...others]
  throw invalidOption(
    `${name}.keys`,
    'must be a list of at least one key',
    kindOf(given),
    "Pass [{ id: '2026-11', key }].",
  )
}

function readKey(name: string, given: EncryptionKey): Key {
  requireOptions(name, given, ['id', 'key'])
  const { id, key } = given
  if (typeof id !== 'string' || !/^[\w.:/-]{1,40}$/.test(id)) {
    const rule = 'must consist of 1 to 40 of the characters A-Za-z0-9._:/-'
    throw invalidOption(`${name}.id`, rule, show(id), "Pass an id such as '2026-11'.")
  }
  const head = Buffer.from([SEALED, VERSION, id.length, ...Buffer.from(id)])
  if (typeof key === 'function') return { id, head, readKey: key }
  return { id, head, readKey: () => key, object: toKeyObject(`${name}.key`, key) }
}

/** Checks a key. The errors never show the value, because it may be a key. */
function toKeyObject(name: string, key: unknown): KeyObject {
  if (isUint8Array(key) && key.length === KEY_BYTES) return createSecretKey(key)
  const found = isUint8Array(key) ? `${key.length} bytes` : kindOf(key)
  throw invalidOption(
    name,
    `must be ${KEY_BYTES} bytes`,
    found,
    "Pass Buffer.from(text, 'base64'), where text is the output of `openssl rand -base64 32`.",
  )
}

/**
 * Loads a key by calling its function. All calls that wait for the key share one call of the function. After a failure, the next call tries
 * again.
 */
async function load(key: Key): Promise<void> {
  const loadOnce = async (): Promise<void> => {
    try {
      key.object = toKeyObject('key()', await key.readKey())
    } catch (cause) {
      const found = describeError(cause).replace(/\.$/, '')
      const text = `The function of key ${show(key.id)} in \`encryption.keys\` failed: ${found}. Correct the function: Hookline calls it again when it needs the key.`
      throw new HooklineError('queue_unavailable', text, { cause })
    }
  }
  if (key.object !== undefined) return
  key.loading ??= loadOnce().finally(() => {
    key.loading = undefined
  })
  await key.loading
}

/**
 * Returns what a sealed value is bound to: its kind and the id of its job. A value that was copied to another job cannot be opened there.
 */
function placeOf(kind: string, id: string): Buffer {
  return Buffer.from(`${kind} ${id}`, 'latin1')
}

/**
 * Random bytes for the IVs of the next values. Many are generated at a time, because generating a few for each value would take as long as
 * sealing it.
 */
let ivs = Buffer.alloc(0)

function newIv(): Buffer {
  if (ivs.length === 0) ivs = randomBytes(256 * IV_BYTES)
  const iv = ivs.subarray(0, IV_BYTES)
  ivs = ivs.subarray(IV_BYTES)
  return iv
}

/**
 * Wraps a queue so that it stores values sealed; returns the queue itself if there are no keys. Values that were stored in plain text are
 * still read.
 */
export function encryptQueue(queue: Queue, seals: Seals | undefined, clock: Clock): Queue {
  if (seals === undefined) return queue
  const unsealStored = <Stored extends StoredBytes>(stored: Stored): Stored => changeStored(stored, seals.tryOpen)
  const opened = async <Stored extends StoredBytes>(list: () => Promise<readonly Stored[]>) => {
    await seals.waitToOpen()
    return (await list()).map(unsealStored)
  }
  const openState = ({ id, retryState }: ClaimedJob) => unsealStored({ id, retryState })
  const { log } = queue
  return {
    ...queue,
    async push(jobs, options) {
      if (!seals.canSeal()) await seals.waitToSeal()
      const sealed = jobs.map((job) => changeStored(job, seals.seal))
      return queue.push(sealed, options)
    },
    work(handle, options) {
      const { runsAlone, room } = options
      const wake = queue.work(sealHandler(handle, options, seals, clock), {
        ...options,
        ...(!seals.canOpen() && { room: createRoom(room, seals, clock, () => wake()) }),
        ...(runsAlone && { runsAlone: (job) => runsAlone(job.retryState ? { ...job, ...openState(job) } : job) }),
      })
      return wake
    },
    deadLetters: (page) => opened(() => queue.deadLetters(page)),
    async drop(which) {
      if (!isFilter(which) || which.matches === undefined) return queue.drop(which)
      const { matches } = which
      await seals.waitToOpen()
      return queue.drop({ ...which, matches: (letter) => matches(unsealStored(letter)) })
    },
    async forget(matches) {
      await seals.waitToOpen()
      return queue.forget((job) => matches(unsealStored(job)))
    },
    close: async (options) => (await queue.close(options)).map(unsealStored),
    ...(log && { log: { list: (page) => opened(() => log.list(page)) } }),
  }
}

/**
 * Wraps `room` so that no job is claimed until all keys are loaded. Otherwise, a job whose key is not loaded would have to be released
 * again.
 */
function createRoom(room: Room | undefined, seals: Seals, clock: Clock, wake: () => void): Room {
  const warn = createWarning('encryption.keys', 'HOOKLINE_ENCRYPTION')
  return {
    count() {
      if (seals.canOpen()) return room?.count() ?? Number.POSITIVE_INFINITY
      seals.waitToOpen().then(wake, warn)
      return 0
    },
    nextAt: () => (seals.canOpen() ? room?.nextAt() : new Date(clock.now() + ASK_AGAIN_MS)),
  }
}

/**
 * Wraps a handler: opens the values that the handler gets, and seals the values that it stores. A job that cannot be opened becomes a dead
 * letter, with its bytes unchanged.
 */
function sealHandler(handle: HandleJob, { onUnreadable }: WorkOptions, seals: Seals, clock: Clock): HandleJob {
  // All calls of the handler share this map, because the transaction of one call can also complete the jobs of other calls.
  const sealedJobs = new WeakMap<ClaimedJob, ClaimedJob>()
  return async (job, signal, save, begin) => {
    if (!seals.canOpen()) await seals.waitToOpen()
    const { id, body, retryState } = job
    const sealState = (state: Uint8Array): Uint8Array => seals.seal('retryState', id, state)
    let opened: ClaimedJob
    try {
      opened = changeStored(job, seals.open)
      sealedJobs.set(opened, job)
    } catch (error) {
      const reason = describeError(error)
      onUnreadable?.({ id, body, retryState, reason, failedAt: new Date(clock.now()) })
      return { deadLetter: reason, ...(retryState && { retryState }) }
    }
    const beginSealed: typeof begin =
      begin &&
      (async (timeoutMs) => {
        const transaction = await begin(timeoutMs)
        const commit: typeof transaction.commit = (completions) =>
          transaction.commit(
            completions.map(({ claim, log }) => ({
              claim: sealedJobs.get(claim) ?? claim,
              log: log && seals.seal('note', claim.id, log),
            })),
          )
        return { ...transaction, commit }
      })
    const outcome = await handle(opened, signal, save && ((state) => save(sealState(state))), beginSealed)
    if ('complete' in outcome) return { ...outcome, ...(outcome.log && { log: seals.seal('note', id, outcome.log) }) }
    return { ...outcome, ...(outcome.retryState && { retryState: sealState(outcome.retryState) }) }
  }
}

/** The result of encrypting a queue again. */
export interface Reencrypted {
  /** How many dead letters and messages of the history were encrypted again. */
  readonly count: number
  /**
   * How many messages are not encrypted with the first key, keyed by the id of their key. The id `''` stands for messages in plain text.
   */
  readonly left: Readonly<Record<string, number>>
}

/** Uses the first key to seal all values that the engine can change in place, and counts the messages that are not sealed with this key. */
export async function reseal(queue: Queue, seals: Seals): Promise<Reencrypted> {
  await seals.waitToOpen()
  const count = (await queue.rewrite?.(seals.reseal)) ?? 0
  const left: Record<string, number> = {}
  await queue.forget(({ body }) => {
    const id = sealedWith(body) ?? ''
    if (!seals.isCurrent(body)) left[id] = (left[id] ?? 0) + 1
    return false // `forget` serves to read every message. It deletes none, because of this result.
  })
  return { count, left }
}
