/** How generated code looks: names, texts, comments and line breaks. No text of a plan can leave its place. */

const WIDTH = 110

/** A text in quotes: in single ones where it holds none. Control and formatting characters are escaped, so that the code reads as it runs. */
export function quote(text: string): string {
  const escaped = JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeUnits)
  return text.includes("'") ? escaped : `'${escaped.slice(1, -1).replaceAll('\\"', '"')}'`
}

export function literalOf(value: string | number | boolean): string {
  return typeof value === 'string' ? quote(value) : String(value)
}

/** A character as `\\u202e`: code and JSON that hide nothing. */
export function escapeUnits(char: string): string {
  const units = Array.from({ length: char.length }, (_, at) => char.charCodeAt(at).toString(16).padStart(4, '0'))
  return units.map((unit) => `\\u${unit}`).join('')
}

/** The key of a property of an object literal. `__proto__` would set the prototype. */
export function keyOf(name: string): string {
  if (name === '__proto__') return "['__proto__']"
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name)
}

/** A regular expression: as a literal, unless that would hide some of it. */
export function regExpOf(pattern: RegExp): string {
  const literal = String(pattern)
  if (!/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(literal)) return literal
  return `new RegExp(${quote(pattern.source)}, ${quote(pattern.flags)})`
}

/** A doc comment of paragraphs, with a line break at its end; empty without any. */
export function comment(paragraphs: readonly string[], indent: string): string {
  const lines = paragraphs.flatMap((paragraph) => wrap(readable(paragraph), WIDTH - indent.length))
  if (lines.length === 0) return ''
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`
}

/** What a description says, on one line and unable to end the comment. */
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

/** Items between brackets: on one line if they fit, else each on its own. */
export function bracket(open: string, items: readonly string[], close: string, indent: string): string {
  const line = `${open}${items.join(', ')}${close}`
  if (items.length === 0 || (indent.length + line.length <= WIDTH && !line.includes('\n'))) return line
  return `${open}\n${items.map((item) => `${indent}  ${item},\n`).join('')}${indent}${close}`
}

/** So many characters, as JSON Schema counts them: lengths of libraries are in UTF-16 units. */
export function charsOf(min: number, max: number | undefined): string {
  return `/^.{${min === max ? min : `${min},${max ?? ''}`}}$/su`
}
