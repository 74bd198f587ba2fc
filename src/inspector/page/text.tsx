/** Text of strangers, so that all of it is seen and none of it moves what is beside it. */

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** Joiners that emoji and scripts need are no danger. */
const HARMLESS = new Set(['\u200c', '\u200d', '\u00ad'])

/**
 * Shows a text on its own: characters that are not seen, or that change the direction of others, are shown by their codes.
 *
 * @param lines Whether line breaks and tabs are kept.
 */
export function Text({ value, lines = false }: { readonly value: string; readonly lines?: boolean }) {
  const pieces: preact.ComponentChild[] = []
  let from = 0
  for (const { 0: found, index } of value.matchAll(UNSEEN)) {
    if (HARMLESS.has(found) || (lines && (found === '\n' || found === '\t'))) continue
    pieces.push(
      value.slice(from, index),
      <span key={index} class="code">
        {codeOf(found)}
      </span>,
    )
    from = index + found.length
  }
  return <bdi>{from === 0 ? value : [...pieces, value.slice(from)]}</bdi>
}

/** `\n`, `\u202e`, `\u{e0041}`. */
function codeOf(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '\r') return '\\r'
  if (character === '\t') return '\\t'
  const code = (character.codePointAt(0) as number).toString(16)
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
}
