/** Shows untrusted text: on one line, escaped, and short. */

import { kindOf } from './error.ts'

/** Writes text on one line. Replaces each control or format character with its code, such as `\u{1b}`. */
export function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

const MAX_SHOWN = 40

/** Quotes the first 40 characters of a string, which must not be a secret. Returns the kind of an empty string or of any other value. */
export function showText(value: unknown): string {
  if (typeof value !== 'string' || value === '') return kindOf(value)
  const characters = [...value.slice(0, 2 * MAX_SHOWN + 1)] // A character has one or two UTF-16 code units.
  const isCut = characters.length > MAX_SHOWN
  return `'${escaped(characters.slice(0, MAX_SHOWN).join(''))}${isCut ? '…' : ''}'`
}
