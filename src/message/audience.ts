/** Audiences in messages: the trait of an audience, and whether a message reports its membership. */

import { kindOf } from './error.ts'
import type { Message } from './message.ts'

/**
 * Returns the trait of an audience or a computed trait: its name in snake_case ("Outbound event delivery",
 * Audience and computed-trait delivery 2). `High Value Users` and `highValueUsers` are `high_value_users`.
 *
 * @throws TypeError for a name without a letter or a digit.
 */
export function traitName(name: string): string {
  if (typeof name !== 'string') throw invalidName(name)
  const words = name
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .match(/[\p{L}\p{M}\p{N}]+/gu)
  if (words === null) throw invalidName(name)
  return words.join('_').toLowerCase()
}

function invalidName(name: unknown): TypeError {
  return new TypeError(
    `The name of an audience must be a string with a letter or a digit. Got ${typeof name === 'string' ? 'one without' : kindOf(name)}. Pass a name such as 'High Value Users'.`,
  )
}

/**
 * Reads what a message reports about an audience: true for entered, false for left, undefined for neither. Looks at the
 * boolean trait of an identify, and at a track named `Audience Entered` or `Audience Exited` whose `audience_key` is the
 * trait.
 */
export function membership(message: Message, trait: string): boolean | undefined {
  if (message.type === 'identify') {
    const value = Object.hasOwn(message.traits ?? {}, trait) ? message.traits?.[trait] : undefined
    return typeof value === 'boolean' ? value : undefined
  }
  if (message.type === 'track' && message.properties?.audience_key === trait) {
    if (message.event === 'Audience Entered') return true
    if (message.event === 'Audience Exited') return false
  }
  return undefined
}
