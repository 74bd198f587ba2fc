/** Checks and completes the options of an inspector. */

import {
  createLog,
  invalidOption,
  kindOf,
  requireInteger,
  requireMethods,
  requireOptions,
  systemClock,
} from '../../../../src/internals.ts'
import type { InspectorOptions, ListenOptions } from '../api.ts'
import { readKeep } from '../journal.ts'

const OPTIONS = [
  'receiver',
  'destinations',
  'collector',
  'senders',
  'authorize',
  'token',
  'keep',
  'clock',
  'logger',
] as const satisfies (keyof InspectorOptions)[]

const MAX_NAME = 60

/** Checks and completes the options. The parts in the result are keyed by name. */
export function readOptions(options: InspectorOptions) {
  requireOptions('createInspector', options, OPTIONS)
  const { authorize, token, clock = systemClock, logger } = options
  const names = new Set<string>()
  const receivers = readParts('receiver', options.receiver, 'receiver', ['handle', 'receive', 'health'], names)
  const destinations = readParts('destinations', options.destinations, 'destination', ['submit', 'health'], names)
  const collectors = readParts('collector', options.collector, 'collector', ['handle', 'delete'], names)
  if (names.size === 0) {
    const advice = 'Pass `receiver`, `destinations` or `collector`.'
    throw invalidOption('createInspector: options', 'must have a part to watch', undefined, advice)
  }
  const senders = readParts('senders', options.senders, 'sender', ['send', 'request'], new Set())
  if (authorize !== undefined && typeof authorize !== 'function') {
    throw invalidOption('authorize', 'must be a function', kindOf(authorize), 'Pass a function, or omit the option.')
  }
  requireToken(token, authorize)
  requireMethods('clock', clock, ['now', 'monotonic', 'setTimeout', 'clearTimeout'])
  const keep = readKeep(options.keep)
  const log = createLog(logger, undefined, systemClock)
  return { receivers, destinations, collectors, senders, authorize, token, keep, clock, log }
}

/** Checks and completes the options of `listen`. */
export function readListenOptions(options: ListenOptions): Required<ListenOptions> {
  requireOptions('listen', options, ['port', 'host'])
  const { port, host = '127.0.0.1' } = options
  requireInteger('port', port, 0, 65_535)
  if (typeof host === 'string' && host !== '') return { port, host }
  throw invalidOption('host', 'must be an address', kindOf(host), "Pass an address, for example '127.0.0.1'.")
}

/**
 * Reads one part, or an object of parts that are keyed by name.
 *
 * @param methods The methods that distinguish a part from an object of parts.
 * @param names The names in use. This function adds the names of these parts.
 */
function readParts<Part extends object>(
  option: string,
  given: Part | Readonly<Record<string, Part>> | undefined,
  defaultName: string,
  methods: readonly (keyof Part & string)[],
  names: Set<string>,
): ReadonlyMap<string, Part> {
  if (given === undefined) return new Map()
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const advice = `Pass a ${defaultName}, or an object of ${defaultName}s, keyed by the names that the page shows.`
    throw invalidOption(option, `must be a ${defaultName} or an object of ${defaultName}s`, kindOf(given), advice)
  }
  const isOne = methods.some((method) => typeof (given as Part)[method] === 'function')
  const parts = Object.entries(isOne ? { [defaultName]: given as Part } : (given as Record<string, Part>))
  for (const [name, part] of parts) {
    if (name.length < 1 || name.length > MAX_NAME) {
      const advice = "Pass a short name, for example 'shop'."
      throw invalidOption(
        option,
        `must have names of 1 to ${MAX_NAME} characters`,
        `a name of ${name.length} characters`,
        advice,
      )
    }
    if (names.has(name)) {
      throw invalidOption(
        option,
        'must have names that no other part has',
        `'${name}' twice`,
        'Rename one of the parts.',
      )
    }
    names.add(name)
    requireMethods(isOne ? option : `${option}['${name}']`, part, methods)
  }
  return new Map(parts)
}

/** Checks the token. Errors never show the token. */
function requireToken(token: unknown, authorize: unknown): void {
  if (token === undefined) return
  if (authorize !== undefined) {
    throw invalidOption('token', 'cannot be combined with `authorize`', undefined, 'Pass only one of the two.')
  }
  if (typeof token === 'string' && /^[\w-]{32,256}$/.test(token)) return
  const found = typeof token === 'string' ? undefined : kindOf(token)
  const advice = 'Create a token with `openssl rand -hex 32`.'
  throw invalidOption('token', 'must be 32 to 256 letters, digits, `-` or `_`', found, advice)
}
