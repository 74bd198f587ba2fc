/** What an inspector keeps of messages: how much, and where. */

import { refuseUnknown, requireText, requireWhole } from '../options/checks.ts'
import type { KeepOptions } from './api.ts'

/** The options, checked and complete. */
export type Keep = Required<Omit<KeepOptions, 'path'>> & Pick<KeepOptions, 'path'>

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readKeep(keep: KeepOptions = {}): Keep {
  refuseUnknown(keep, ['messages', 'bytes', 'refused', 'refusedBytes', 'path'], 'keep.')
  const { messages = 2_000, bytes = 64_000_000, refused = 200, refusedBytes = 4_000_000, path } = keep
  requireWhole('keep.messages', messages, 1, MOST_MESSAGES)
  requireWhole('keep.bytes', bytes, LEAST_BYTES)
  requireWhole('keep.refused', refused, 1, MOST_MESSAGES)
  requireWhole('keep.refusedBytes', refusedBytes, LEAST_BYTES)
  if (path !== undefined) requireText('keep.path', path, 'inspector.sqlite')
  return { messages, bytes, refused, refusedBytes, ...(path !== undefined && { path }) }
}

/** A page lists all of them. */
const MOST_MESSAGES = 100_000
/** Holds the largest body that a receiver takes by default. */
const LEAST_BYTES = 1_000_000
