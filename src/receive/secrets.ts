/** Reads the shared secret in each form of its option: a constant, a function whose result is cached, or a secret for each source. */

import type { EndpointHeaders } from '../host/endpoint.ts'
import {
  invalidOption,
  isToken,
  kindOf,
  refuseUnknown,
  requireBoolean,
  requireFunction,
  requireOptions,
  show,
  warnIfMisread,
} from '../kit/checks.ts'
import { type Clock, inBackground } from '../kit/clock.ts'
import { TIMED_OUT, withTimeout } from '../kit/timeout.ts'
import { HooklineError } from '../protocol/error.ts'
import { SECRET_COOLDOWN_MS, SECRET_MAX_AGE_MS, SECRET_RETRY_MS, SOURCE_NAME_LIMIT } from '../protocol/limits.ts'
import { createKeys, type Key } from '../protocol/signature.ts'
import { createLateError } from './deadline.ts'

/** The maximum number of sources whose secrets are kept. */
const SOURCES_LIMIT = 10_000
/**
 * The maximum number of source names whose secrets are being looked up, or that are remembered because they have no secret. This number is
 * limited, because forged requests can name any number of sources.
 */
const UNKNOWN_SOURCES_LIMIT = 100

/** One shared secret, or several while one replaces another. */
export type Secrets = string | readonly (string | undefined)[]

/** Returns the shared secret, for example from a vault. The result is cached for up to 5 minutes. */
export type SecretProvider = () => Secrets | undefined | Promise<Secrets | undefined>

/** The header that a sender adds to each request, in place of a signature. */
export interface HeaderKey {
  /** The name of the header, in any case. */
  readonly name: string
  /** The value of the header, in ASCII characters. Pass it in any form of the option `secret` except the one for several sources. */
  readonly value: Secrets | SecretProvider | undefined
}

/** A request whose source is to be determined. Nothing in it has been authenticated yet. */
export interface SourceRequest {
  /** The path as the adapter sees it: relative to where a router mounted the adapter, without the query. */
  readonly path: string
  /** The query as it was sent, without its `?`; empty for a request without a query. */
  readonly query: string
  /** The headers of the request, with names in lower case. */
  readonly headers: EndpointHeaders
}

/** The secrets of several sources that post to one receiver. */
export interface SourceSecrets {
  /**
   * Returns the name of the source of a request, or undefined for a source that is not yours. Called for each request that has a signature,
   * before the signature is checked, so the request may be forged. A name with more than 200 characters counts as unknown.
   */
  readonly source: (request: SourceRequest) => string | undefined
  /** Returns the secret of a source, or undefined if there is no such source. Results are cached, each for up to 5 minutes. */
  readonly secrets: (source: string) => Secrets | undefined | Promise<Secrets | undefined>
}

/** The keys of a source. Both functions throw or reject with `secret_unavailable` if the secret provider fails. */
interface SourceKeys {
  /** The name of the source; undefined for a receiver without sources, and for a request without a source. */
  readonly source: string | undefined
  /**
   * Returns the keys of the source; for a source without a secret, an empty list. Returns a promise only while the provider is being
   * called.
   */
  keys(): readonly Key[] | Promise<readonly Key[]>
  /**
   * Calls the provider for a newer secret, after a mismatch. Returns undefined without a provider, and if the provider was called less than
   * 10 seconds ago.
   */
  newerKeys(): Promise<readonly Key[]> | undefined
}

/** Finds the keys that a request may be signed with. */
export type FindKeys = (request: SourceRequest) => SourceKeys

type SecretOption = Secrets | SecretProvider | SourceSecrets | undefined

interface VerificationOptions {
  readonly secret?: SecretOption
  readonly header?: HeaderKey
  readonly allowUnsigned?: boolean
}

/** Reads the options that say how requests are verified. Returns undefined when unsigned requests are allowed. */
export function readSecret(
  { secret, header, allowUnsigned = false }: VerificationOptions,
  clock: Clock,
): FindKeys | undefined {
  requireBoolean('allowUnsigned', allowUnsigned)
  if (header !== undefined) {
    if (secret !== undefined || allowUnsigned) {
      const other = secret === undefined ? 'allowUnsigned' : 'secret'
      throw invalidOption('header', `cannot be combined with \`${other}\``, undefined, 'Pass only one of the two.')
    }
    requireOptions('header', header, ['name', 'value'])
    if (!isToken(header.name)) {
      throw invalidOption(
        'header.name',
        'must be the name of a header',
        show(header.name),
        "Pass, for example, 'X-Webhook-Key'.",
      )
    }
    return createFindKeys(header.value, clock, 'header.value')
  }
  if (!allowUnsigned) return createFindKeys(secret, clock)
  if (secret === undefined) return undefined
  throw invalidOption('allowUnsigned', 'cannot be combined with `secret`', undefined, 'Pass only one of the two.')
}

function createFindKeys(secret: SecretOption, clock: Clock, option = 'secret'): FindKeys {
  const readKeys = createReader(option)
  if (typeof secret === 'function') {
    const cache = createSecretCache(async () => readKeys(await secret()), clock)
    const keys = { source: undefined, ...cache }
    return () => keys
  }
  if (option === 'secret' && isSourceSecrets(secret)) {
    refuseUnknown(secret, ['source', 'secrets'], 'secret.')
    requireFunction('secret.source', secret.source)
    requireFunction('secret.secrets', secret.secrets)
    return createFindKeysOfSource(secret, readKeys, clock)
  }
  if (typeof secret === 'object' && !Array.isArray(secret)) {
    const rule = 'must be a string, a list of strings, a function or { source, secrets }'
    throw invalidOption(option, rule, kindOf(secret), 'Pass the secret, or a function that returns it.')
  }
  if (secret === undefined || secret === '') {
    const what =
      option === 'secret' ? 'the shared secret of the destination' : 'the value that the sender sends in this header'
    const advice = `Pass ${what}. If it is in an environment variable, set that variable before the process starts, or pass a function that returns it. \`allowUnsigned: true\` accepts messages from anyone.`
    throw invalidOption(option, 'is required', kindOf(secret), advice)
  }
  const keys = constantKeys(readKeys(secret))
  return () => keys
}

type Read = (secrets: Secrets | undefined) => readonly Key[]

/** Creates a function that makes keys from secrets, and warns once about a secret that looks like a mistake. */
function createReader(option: string): Read {
  let hasWarned = false
  return (secrets) => {
    const keys = createKeys(secrets, option)
    const list = typeof secrets === 'object' ? secrets : [secrets]
    const nameOf = (index: number): string => (list === secrets ? `${option}[${index}]` : option)
    hasWarned = hasWarned || list.some((secret, index) => warnIfMisread(nameOf(index), secret))
    return keys
  }
}

export function isSourceSecrets(secret: unknown): secret is SourceSecrets {
  return typeof secret === 'object' && secret !== null && ('source' in secret || 'secrets' in secret)
}

function createFindKeysOfSource({ source, secrets }: SourceSecrets, readKeys: Read, clock: Clock): FindKeys {
  const known = new Map<string, SecretCache>()
  /** The sources whose secrets are being looked up, and those without a secret. Forged requests may name any number of such sources. */
  const unknown = new Map<string, SecretCache>()

  function cacheOf(given: string): SecretCache {
    const found = known.get(given) ?? unknown.get(given)
    if (found !== undefined) return found
    makeRoom()
    const name = copyText(given)
    const load = async (): Promise<readonly Key[]> => {
      const value = await secrets(name)
      const keys = value === undefined ? [] : readKeys(value)
      if (keys.length > 0 && unknown.delete(name)) addKnown(name, cache)
      return keys
    }
    const cache = createSecretCache(load, clock)
    unknown.set(name, cache)
    return cache
  }

  /** Forgets the oldest unknown source whose secret is not being looked up. Throws `secret_unavailable` if all are being looked up. */
  function makeRoom(): void {
    if (unknown.size < UNKNOWN_SOURCES_LIMIT) return
    for (const [name, { isAsking }] of unknown) if (!isAsking()) return void unknown.delete(name)
    const text = `The limit of ${UNKNOWN_SOURCES_LIMIT} simultaneous lookups of secrets for unknown sources has been reached. Send the message again.`
    throw new HooklineError('secret_unavailable', text)
  }

  function addKnown(name: string, cache: SecretCache): void {
    const [oldest] = known.keys()
    if (oldest !== undefined && known.size >= SOURCES_LIMIT) known.delete(oldest)
    known.set(name, cache)
  }

  return (request) => {
    const name = nameSource(source, request)
    if (name === undefined || name === '' || name.length > SOURCE_NAME_LIMIT) return NO_SOURCE
    return { source: name, ...cacheOf(name) }
  }
}

function constantKeys(keys: readonly Key[]): SourceKeys {
  return { source: undefined, keys: () => keys, newerKeys: () => undefined }
}

const NO_SOURCE = constantKeys([])

/** Copies a string into memory of its own, because a part of the request target would keep the whole target in memory. */
function copyText(name: string): string {
  return Buffer.from(name, 'utf16le').toString('utf16le')
}

/** @throws HooklineError `secret_unavailable` when `source` throws, or returns neither a string nor undefined. */
function nameSource(source: SourceSecrets['source'], request: SourceRequest): string | undefined {
  try {
    const name: unknown = source(request)
    if (name === undefined || typeof name === 'string') return name
    const advice = 'Return the name of the source, or undefined for an unknown source.'
    throw invalidOption('secret.source()', 'must return a string or undefined', kindOf(name), advice)
  } catch (cause) {
    const text = '`secret.source` failed to name the source of the request. See `cause` of this error in `onError`.'
    throw new HooklineError('secret_unavailable', text, { cause })
  }
}

type SecretCache = ReturnType<typeof createSecretCache>

/** Caches the result of a provider for SECRET_MAX_AGE_MS. Calls the provider only when a request needs its result. */
function createSecretCache(load: () => Promise<readonly Key[]>, clock: Clock) {
  let keys: readonly Key[] = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let askedAt = Number.NEGATIVE_INFINITY
  let failure: HooklineError | undefined
  let pending: Promise<readonly Key[]> | undefined

  const isWithin = (ms: number, since: number): boolean => clock.monotonic() - since < ms

  async function loadOnce(): Promise<readonly Key[]> {
    const time = clock.monotonic()
    askedAt = time
    try {
      const loaded = await load()
      if (time < loadedAt) return keys // A later call was answered first.
      keys = loaded
      loadedAt = time
      failure = undefined
      return keys
    } catch (cause) {
      const text = 'The secret provider failed, or returned no secret. See `cause` of this error in `onError`.'
      const error = new HooklineError('secret_unavailable', text, { cause })
      if (time >= loadedAt) failure = error
      throw error
    }
  }

  /** Calls the provider once for all requests that wait. Abandons a call that has not ended after SECRET_COOLDOWN_MS. */
  function ask(): Promise<readonly Key[]> {
    if (pending !== undefined && isWithin(SECRET_COOLDOWN_MS, askedAt)) return pending
    const asked = askInTime().finally(() => {
      if (pending === asked) pending = undefined
    })
    pending = asked
    return asked
  }

  async function askInTime(): Promise<readonly Key[]> {
    const loaded = await withTimeout(loadOnce(), SECRET_COOLDOWN_MS, inBackground(clock))
    if (loaded === TIMED_OUT) throw createLateError('secret')
    return loaded
  }

  return {
    isAsking: () => pending !== undefined,
    keys(): readonly Key[] | Promise<readonly Key[]> {
      if (isWithin(SECRET_MAX_AGE_MS, loadedAt)) return keys
      if (failure !== undefined && isWithin(SECRET_RETRY_MS, askedAt)) throw failure
      return ask()
    },
    newerKeys(): Promise<readonly Key[]> | undefined {
      if (pending !== undefined || !isWithin(SECRET_COOLDOWN_MS, askedAt)) return ask()
      if (failure !== undefined) throw failure // There may be a newer secret that the provider could not return.
      return undefined
    },
  }
}
