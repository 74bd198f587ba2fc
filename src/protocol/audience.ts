/** Audiences in messages: the trait of an audience, and the memberships that a message reports. */

import type { ReceivedMessage } from './message.ts'
import { showText } from './show-text.ts'

/**
 * Returns the trait of an audience or a computed trait: its name in snake_case ("Outbound event delivery", Audience and
 * computed-trait delivery 2). `High Value Users` and `highValueUsers` become `high_value_users`.
 */
export function traitName(name: string): string {
  if (typeof name !== 'string') throw invalidName(name)
  const words = name
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2') // userName → user Name
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2') // HTTPUser → HTTP User
    .match(/[\p{L}\p{M}\p{N}]+/gu)
  if (words === null) throw invalidName(name)
  return words.join('_').toLowerCase()
}

function invalidName(name: unknown): TypeError {
  return new TypeError(
    `The name of an audience or a trait must be a string with a letter or a digit. Got ${showText(name)}. Pass a name such as 'High Value Users'.`,
  )
}

/**
 * Reads what a message reports about audiences: for each trait, true if the user entered the audience, false if the user left it. The
 * traits are the boolean traits of an identify message, or the trait that `audience_key` names in a track message with the event
 * `Audience Entered` or `Audience Exited`.
 */
export function memberships(message: ReceivedMessage): readonly (readonly [trait: string, isMember: boolean])[] {
  if (message.type === 'identify') return Object.entries(message.traits ?? {}).filter(isMembership)
  if (message.type !== 'track') return []
  const { event, properties } = message
  const trait = properties?.audience_key
  if (typeof trait !== 'string') return []
  if (event === 'Audience Entered') return [[trait, true]]
  return event === 'Audience Exited' ? [[trait, false]] : []
}

function isMembership(trait: [string, unknown]): trait is [string, boolean] {
  return typeof trait[1] === 'boolean'
}
