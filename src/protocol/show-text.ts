/** How text of strangers is shown: on one line, escaped, and short. */

import { kindOf } from './error.ts'

/** Text on one line: control and format characters are written as `\\u{1b}`. */
export function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

const MAX_SHOWN = 40

/** Shows text that is no secret in quotes, at most 40 characters of it; of anything else, and of an empty text, the kind. */
export function showText(value: unknown): string {
  if (typeof value !== 'string' || value === '') return kindOf(value)
  const [...characters] = value.slice(0, 2 * MAX_SHOWN + 1)
  const isCut = characters.length > MAX_SHOWN
  return `'${escaped(characters.slice(0, MAX_SHOWN).join(''))}${isCut ? '…' : ''}'`
}
