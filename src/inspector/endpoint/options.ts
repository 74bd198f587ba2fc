/** Reads the options of an inspector: checks them once and completes them. */

import {
  invalidOption,
  kindOf,
  requireBoolean,
  requireClock,
  requireFunction,
  requireMethods,
  requireOptions,
  show,
} from '../../options/checks.ts'
import { createLog } from '../../options/log.ts'
import type { ManualClock } from '../../testing/manual-clock.ts'
import { systemClock } from '../../time/clock.ts'
import type { InspectorOptions } from '../api.ts'
import { readKeep } from '../journal.ts'

const OPTIONS = [
  'receiver',
  'destinations',
  'collector',
  'senders',
  'authorize',
  'token',
  'keep',
  'development',
  'clock',
  'logger',
] as const satisfies (keyof InspectorOptions)[]

const MAX_NAME = 60

/** Checks and completes the options. The parts are by their names; `movable` is the clock, when the page may move it. */
export function readOptions(options: InspectorOptions) {
  requireOptions('createInspector', options, OPTIONS)
  const { authorize, token, development = false, clock = systemClock, logger } = options
  const names = new Set<string>()
  const receivers = readParts('receiver', options.receiver, 'receiver', ['handle', 'receive', 'health'], names)
  const destinations = readParts('destinations', options.destinations, 'destination', ['submit', 'health'], names)
  const collectors = readParts('collector', options.collector, 'collector', ['handle', 'delete'], names)
  if (names.size === 0) {
    const advice = 'Pass `receiver`, `destinations` or `collector`.'
    throw invalidOption('createInspector: options', 'must hold a part to watch', 'none', advice)
  }
  const senders = readParts('senders', options.senders, 'sender', ['send', 'request'], new Set())
  if (authorize !== undefined) requireFunction('authorize', authorize)
  requireToken(token, authorize)
  requireBoolean('development', development)
  if (development && process.env.NODE_ENV === 'production') {
    const advice = 'Leave it out in production: it lets the page set faults.'
    throw invalidOption('development', 'must be false when NODE_ENV is production', 'true', advice)
  }
  requireClock(clock)
  const movable = 'advance' in clock ? (clock as ManualClock) : undefined
  if (movable !== undefined && !development) {
    const advice = 'Pass `development: true`, or leave out the clock.'
    throw invalidOption('clock', 'needs `development` when it can be moved', 'a clock with `advance`', advice)
  }
  const keep = readKeep(options.keep)
  const log = createLog(logger, undefined, systemClock)
  const parts = { receivers, destinations, collectors, senders }
  return { ...parts, authorize, token, keep, isDevelopment: development, clock, movable, log }
}

/**
 * Reads one part, or several by their names.
 *
 * @param methods What tells a part from an object of several.
 * @param names Those that are taken; it adds to them.
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
    const advice = `Pass a ${defaultName}, or an object of them by the names that the page shows.`
    throw invalidOption(option, `must be a ${defaultName} or an object of them`, kindOf(given), advice)
  }
  const isOne = methods.some((method) => typeof (given as Part)[method] === 'function')
  const parts = Object.entries(isOne ? { [defaultName]: given as Part } : (given as Record<string, Part>))
  for (const [name, part] of parts) {
    if (name.length < 1 || name.length > MAX_NAME) {
      const advice = "Pass a short name, for example 'shop'."
      throw invalidOption(option, `must have names of 1 to ${MAX_NAME} characters`, show(name), advice)
    }
    if (names.has(name)) {
      throw invalidOption(option, 'must have names that no other part has', `${show(name)} again`, 'Pass another name.')
    }
    names.add(name)
    requireMethods(isOne ? option : `${option}['${name}']`, part, methods)
  }
  return new Map(parts)
}

/** Its errors never show it. */
function requireToken(token: unknown, authorize: unknown): void {
  if (token === undefined) return
  if (authorize !== undefined) {
    throw invalidOption('token', 'cannot be combined with `authorize`', 'both', 'Pass one of the two.')
  }
  if (typeof token === 'string' && /^[\w-]{32,256}$/.test(token)) return
  const found = typeof token === 'string' ? 'other text' : kindOf(token)
  const advice = 'Make one: openssl rand -hex 32.'
  throw invalidOption('token', 'must be 32 to 256 letters, digits, `-` and `_`', found, advice)
}
