/** How serialisers write a string of JSON: which characters they escape, and how. */

/**
 * Writes a string, with its quotation marks. Undefined for one that the serialiser refuses.
 *
 * @param lexeme How the string is written now, with its quotation marks.
 */
export type WriteString = (text: string, lexeme: string) => string | undefined

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

/** Escapes what the pattern matches: in short where JSON has a short form, else as `\u` and four lowercase digits. */
function escaping(pattern: RegExp, short: Readonly<Record<string, string>> = SHORT): WriteString {
  const escapeChar = (char: string): string => short[char] ?? escapeUnit(char)
  return (text) => `"${text.replace(pattern, escapeChar)}"`
}

/** As it was written. */
export const asWritten: WriteString = (_text, lexeme) => lexeme
/** As it was written, but for the characters that Go escapes for HTML even in JSON that it passes on. */
export const goPassedOn: WriteString = (_text, lexeme) => lexeme.replace(/[<>&\u2028\u2029]/g, escapeUnit)

function escapeUnit(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Without lone surrogates, which have no UTF-8. */
function wellFormed(write: WriteString): WriteString {
  return (text, lexeme) => (text.isWellFormed() ? write(text, lexeme) : undefined)
}

const { '\b': _backspace, '\f': _formFeed, ...SHORT_OF_OLD_GO } = SHORT

/* biome-ignore-start lint/suspicious/noControlCharactersInRegex: they are what must be escaped. */
export const javascript: WriteString = (text) => JSON.stringify(text)
export const pythonAscii: WriteString = escaping(/["\\\0-\x1f\x7f-\uffff]/g)
export const minimal: WriteString = wellFormed(escaping(/["\\\0-\x1f]/g))
export const php: WriteString = wellFormed(escaping(/["\\/\0-\x1f\x80-\uffff]/g))
export const phpSlashes: WriteString = wellFormed(escaping(/["\\\0-\x1f\x80-\uffff]/g))
export const phpUnicode: WriteString = wellFormed(escaping(/["\\/\0-\x1f\u2028\u2029]/g))
export const phpSlashesUnicode: WriteString = wellFormed(escaping(/["\\\0-\x1f\u2028\u2029]/g))
export const rubySlashes: WriteString = wellFormed(escaping(/["\\/\0-\x1f]/g))
export const rubyScript: WriteString = wellFormed(escaping(/["\\/\0-\x1f\u2028\u2029]/g))
export const rubyAscii: WriteString = wellFormed(escaping(/["\\\0-\x1f\x80-\uffff]/g))
export const rails: WriteString = wellFormed(escaping(/["\\\0-\x1f<>&\u2028\u2029]/g))
// Lone surrogates become U+FFFD when the text is encoded; Go does so when it decodes.
export const go: WriteString = escaping(/["\\\0-\x1f<>&\u2028\u2029]/g)
export const goPlain: WriteString = escaping(/["\\\0-\x1f\u2028\u2029]/g)
export const oldGo: WriteString = escaping(/["\\\0-\x1f<>&\u2028\u2029]/g, SHORT_OF_OLD_GO)
export const oldGoPlain: WriteString = escaping(/["\\\0-\x1f\u2028\u2029]/g, SHORT_OF_OLD_GO)
/* biome-ignore-end lint/suspicious/noControlCharactersInRegex: they are what must be escaped. */
