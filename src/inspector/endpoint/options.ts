/** Reads the options of an inspector: checks them once and completes them. */

import type { Collector } from '../../collector/api.ts'
import type { Destination } from '../../destination/api.ts'
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
import { createLog, type Log } from '../../options/log.ts'
import type { Receiver } from '../../receiver/api.ts'
import type { Sender } from '../../sender/api.ts'
import type { ManualClock } from '../../testing/manual-clock.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import type { Authorize, InspectorOptions } from '../api.ts'
import { type Keep, readKeep } from '../journal.ts'

/** The options of an inspector, checked and complete. The parts are by their names. */
export interface InspectorSettings {
  readonly receivers: ReadonlyMap<string, Receiver>
  readonly destinations: ReadonlyMap<string, Destination>
  readonly collectors: ReadonlyMap<string, Collector>
  readonly senders: ReadonlyMap<string, Sender>
  readonly authorize: Authorize | undefined
  readonly token: string | undefined
  readonly keep: Keep
  readonly isDevelopment: boolean
  readonly clock: Clock
  /** The clock, when the page may move it. */
  readonly movable: ManualClock | undefined
  readonly log: Log
}

const PARTS = ['receiver', 'destinations', 'collector', 'senders'] as const
const OPTIONS = [
  ...PARTS,
  'authorize',
  'token',
  'keep',
  'development',
  'clock',
  'logger',
] as const satisfies (keyof InspectorOptions)[]

/** The most characters of a name. */
const MAX_NAME = 60

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: InspectorOptions): InspectorSettings {
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
  const movable = isMovable(clock) ? clock : undefined
  if (movable !== undefined && !development) {
    const advice = 'Pass `development: true`, or leave out the clock.'
    throw invalidOption('clock', 'needs `development` when it can be moved', 'a clock with `advance`', advice)
  }
  const keep = readKeep(options.keep)
  const log = createLog(logger, undefined, systemClock)
  return {
    receivers,
    destinations,
    collectors,
    senders,
    authorize,
    token,
    keep,
    isDevelopment: development,
    clock,
    movable,
    log,
  }
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
    requireName(option, name, names)
    requireMethods(isOne ? option : `${option}['${name}']`, part, methods)
  }
  return new Map(parts)
}

function requireName(option: string, name: string, names: Set<string>): void {
  if (name.length < 1 || name.length > MAX_NAME) {
    const advice = "Pass a short name, for example 'shop'."
    throw invalidOption(option, `must have names of 1 to ${MAX_NAME} characters`, show(name), advice)
  }
  if (names.has(name)) {
    throw invalidOption(option, 'must have names that no other part has', `${show(name)} again`, 'Pass another name.')
  }
  names.add(name)
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

function isMovable(clock: Clock): clock is ManualClock {
  return typeof (clock as Partial<ManualClock>).advance === 'function'
}
