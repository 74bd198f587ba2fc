/** Splits untrusted text into codes and pieces to show unchanged. The codes replace characters that are invisible or move other text. */

/** Matches characters that are invisible, that a terminal acts on, or that change the direction of text. */
export const UNSEEN: RegExp = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** The maximum number of combining marks on a character. No script needs more, and browsers are slow with long runs of marks. */
const MAX_MARKS = 8
/** Matches the characters to show as codes, and the characters in `HARMLESS`. */
const CODED = new RegExp(`${UNSEEN.source}|(?<=\\p{M}{${MAX_MARKS}})\\p{M}`, 'gu')
/** Invisible characters that emoji and some scripts need, which are not shown as codes. */
const HARMLESS = new Set(['\u200c', '\u200d', '\u00ad'])
/** The maximum number of codes to return as separate pieces, because browsers are slow with many elements. */
const MAX_CODES = 50

export type Piece = string | { readonly code: string }

/**
 * Splits a text into pieces. When the limit on codes is reached, the rest of the text becomes a single piece.
 *
 * @param lines Whether to keep line breaks and tabs instead of replacing them with codes.
 */
export function splitText(value: string, lines: boolean): readonly Piece[] {
  const pieces: Piece[] = []
  let from = 0
  for (const { 0: found, index } of value.matchAll(CODED)) {
    if (isPlain(found, lines)) continue
    if (pieces.length >= 2 * MAX_CODES) return [...pieces, withCodes(value.slice(from), lines)]
    pieces.push(value.slice(from, index), { code: codeOf(found) })
    from = index + found.length
  }
  return [...pieces, value.slice(from)]
}

function withCodes(text: string, lines: boolean): string {
  return text.replace(CODED, (found) => (isPlain(found, lines) ? found : codeOf(found)))
}

function isPlain(character: string, lines: boolean): boolean {
  return HARMLESS.has(character) || (lines && (character === '\n' || character === '\t'))
}

/** Returns the code of a character: `\n`, `\u202e`, `\u{e0041}`. */
function codeOf(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '\r') return '\\r'
  if (character === '\t') return '\\t'
  const code = (character.codePointAt(0) as number).toString(16)
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
}

const RARE_COST = 16

/**
 * Finds the end of a piece of text that is short enough for a browser to lay out quickly. A piece ends with a line, unless the line is
 * too long.
 *
 * @param most The maximum number of visible ASCII characters. Any other UTF-16 unit counts as 16.
 */
export function endOfPiece(text: string, from: number, most: number): number {
  let left = most
  let line = from
  for (let at = from; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    left -= unit >= 0x20 && unit < 0x7f ? 1 : RARE_COST
    // A piece must not end inside a surrogate pair.
    if (left < 0 && (unit < 0xdc00 || unit > 0xdfff)) return line > from ? line : at
    if (unit === 0x0a) line = at + 1
  }
  return text.length
}
