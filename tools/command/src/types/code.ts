/** Writes generated code: names, texts, comments and line breaks. No text from a plan can become code. */

const WIDTH = 110

/** Quotes a text. Escapes control and formatting characters, so that the code does what it appears to do. */
export function quote(text: string): string {
  const escaped = JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeUnits)
  return text.includes("'") ? escaped : `'${escaped.slice(1, -1).replaceAll('\\"', '"')}'`
}

export function literalOf(value: string | number | boolean): string {
  return typeof value === 'string' ? quote(value) : String(value)
}

/** Writes a character as an escape such as `\u202e`, so that it is visible in code and JSON. */
export function escapeUnits(char: string): string {
  const units = Array.from({ length: char.length }, (_, at) => char.charCodeAt(at).toString(16).padStart(4, '0'))
  return units.map((unit) => `\\u${unit}`).join('')
}

/** Writes the key of a property in an object literal. A plain `__proto__` would set the prototype instead. */
export function keyOf(name: string): string {
  if (name === '__proto__') return "['__proto__']"
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name)
}

/** Writes a regular expression as a literal, or as a `RegExp` call if the literal would contain an invisible character. */
export function regExpOf(pattern: RegExp): string {
  const literal = String(pattern)
  if (!/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(literal)) return literal
  return `new RegExp(${quote(pattern.source)}, ${quote(pattern.flags)})`
}

/** Writes paragraphs as a doc comment, with a line break at its end. Returns an empty string if there are no paragraphs. */
export function comment(paragraphs: readonly string[], indent: string): string {
  const lines = paragraphs.flatMap((paragraph) => wrap(readable(paragraph), WIDTH - indent.length))
  if (lines.length === 0) return ''
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`
}

/** Puts a description on one line, and escapes the characters that would end the comment. */
function readable(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return line.replaceAll('*/', '*\\/')
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length >= width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}

/** Writes items between brackets: on one line if they fit, otherwise each on its own line. */
export function bracket(open: string, items: readonly string[], close: string, indent: string): string {
  const line = `${open}${items.join(', ')}${close}`
  if (items.length === 0 || (indent.length + line.length <= WIDTH && !line.includes('\n'))) return line
  return `${open}\n${items.map((item) => `${indent}  ${item},\n`).join('')}${indent}${close}`
}

/** Writes a regular expression that checks the length of a text. JSON Schema counts characters, but schema libraries count UTF-16 units. */
export function charsOf(min: number, max: number | undefined): string {
  return `/^.{${min === max ? min : `${min},${max ?? ''}`}}$/su`
}
