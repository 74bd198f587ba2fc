/** The serialisers that people use: what each does to strings, numbers, the order of members and white space. */

import {
  compact,
  type JsonNode,
  type JsonText,
  type Layout,
  type Member,
  spaced,
  twoSpaces,
  writeJson,
} from './json-text.ts'

/** Writes a string, with its quotation marks. Returns undefined for a string that the serialiser refuses. */
type WriteString = (text: string) => string | undefined

/** Writes a number again. Returns undefined for a number that the serialiser refuses. */
type WriteNumber = (token: string) => string | undefined

/** Puts members in the order in which the serialiser writes them. */
type Arrange = (members: readonly Member[], texts: readonly string[]) => readonly Member[]

export interface JsonWriter {
  /** The name of the serialiser, as developers know it: "json.dumps of Python with sort_keys=True". */
  readonly name: string
  readonly writeString: WriteString
  readonly writeNumber: WriteNumber
  readonly arrange: Arrange
  readonly layout: Layout
}

/** Writes JSON as the serialiser does. Returns undefined for JSON that it refuses, and for more than `limit` characters. */
export function rewrite({ root, tokens, texts }: JsonText, writer: JsonWriter, limit?: number): string | undefined {
  const written: string[] = []
  for (const [index, token] of tokens.entries()) {
    const result = writeToken(token, texts[index] as string, writer)
    if (result === undefined) return undefined
    written.push(result)
  }
  const arrangeAll = (node: JsonNode): JsonNode => {
    if (typeof node === 'number') return node
    if ('items' in node) return { items: node.items.map(arrangeAll) }
    const members = node.members.map(([key, value]): Member => [key, arrangeAll(value)])
    return { members: writer.arrange(members, texts) }
  }
  return writeJson(arrangeAll(root), written, writer.layout, limit)
}

function writeToken(token: string, text: string, { writeString, writeNumber }: JsonWriter): string | undefined {
  if (token.startsWith('"')) return writeString(text)
  return /^[tfn]/.test(token) ? token : writeNumber(token) // All serialisers write true, false and null in the same way.
}

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

/** Creates a writer that escapes the characters that match the pattern: in a short form, such as `\n`, or else as `\u` and four digits. */
function escaping(pattern: RegExp): WriteString {
  const escapeChar = (char: string): string => SHORT[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  return (text) => `"${text.replace(pattern, escapeChar)}"`
}

/** Creates a writer that refuses lone surrogates, which cannot be encoded as UTF-8. */
function wellFormed(write: WriteString): WriteString {
  return (text) => (text.isWellFormed() ? write(text) : undefined)
}

/* biome-ignore-start lint/suspicious/noControlCharactersInRegex: these characters must be escaped. */
const strings = {
  pythonAscii: escaping(/["\\\0-\x1f\x7f-\uffff]/g),
  minimal: wellFormed(escaping(/["\\\0-\x1f]/g)),
  php: wellFormed(escaping(/["\\/\0-\x1f\x80-\uffff]/g)),
  phpSlashes: wellFormed(escaping(/["\\\0-\x1f\x80-\uffff]/g)),
  phpUnicode: wellFormed(escaping(/["\\/\0-\x1f\u2028\u2029]/g)),
  phpSlashesUnicode: wellFormed(escaping(/["\\\0-\x1f\u2028\u2029]/g)),
  // Go replaces lone surrogates with U+FFFD when it decodes JSON. Here, they are replaced when the text is encoded.
  go: escaping(/["\\\0-\x1f<>&\u2028\u2029]/g),
  goPlain: escaping(/["\\\0-\x1f\u2028\u2029]/g),
} satisfies Record<string, WriteString>
/* biome-ignore-end lint/suspicious/noControlCharactersInRegex: these characters must be escaped. */

interface NumberForm {
  /** Floats from this value up are written with an exponent, as are floats below 0.0001. */
  readonly exponentFrom: number
  /** The text between a single digit and its exponent. */
  readonly fraction?: string
  readonly exponentDigits?: number
  isInteger?(token: string): boolean
  writeInfinity?(value: number): string
}

/** Creates a writer that keeps integers of any size, and writes floats with a fraction or an exponent. */
function integersAndFloats({
  exponentFrom,
  fraction = '',
  exponentDigits = 2,
  isInteger = isWhole,
  writeInfinity,
}: NumberForm): WriteNumber {
  return (token) => {
    if (isInteger(token)) return token === '-0' ? '0' : token
    const value = Number(token)
    if (!Number.isFinite(value)) return writeInfinity?.(value)
    const size = Math.abs(value)
    if (size === 0 || (size >= 1e-4 && size < exponentFrom)) {
      const digits = writeDouble(value)
      return digits.includes('.') ? digits : `${digits}.0`
    }
    const [digits = '', exponent = ''] = value.toExponential().split('e')
    const mantissa = digits.includes('.') ? digits : digits + fraction
    return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(exponentDigits, '0')}`
  }
}

function isWhole(token: string): boolean {
  return /^-?\d+$/.test(token)
}

function isOf64Bits(token: string): boolean {
  return isWhole(token) && (token.length < 19 || BigInt.asIntN(64, BigInt(token)) === BigInt(token))
}

/** Writes the shortest digits that read back as the value. Go, PHP, Python and Ruby all write these digits. */
function writeDouble(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

const numbers = {
  /** Writes Infinity as `null`, and negative zero without its sign. */
  javascript: (token) => JSON.stringify(Number(token)),
  go: (token) => (Number.isFinite(Number(token)) ? writeDouble(Number(token)) : undefined),
  python: integersAndFloats({ exponentFrom: 1e16, writeInfinity: String }),
  ruby: integersAndFloats({ exponentFrom: 1e15, fraction: '.0' }),
  php: (token) => phpNumber(token)?.replace(/\.0$/, ''),
} satisfies Record<string, WriteNumber>

const phpNumber = integersAndFloats({ exponentFrom: 1e17, fraction: '.0', exponentDigits: 1, isInteger: isOf64Bits })

const orders = {
  asRead: withoutDuplicates,
  /** Puts keys that are indexes of an array first, in ascending order, as JavaScript does. */
  indexesFirst: (members, texts) => {
    const kept = withoutDuplicates(members, texts)
    const isFirst = ([key]: Member): boolean => isIndex(texts[key] as string)
    const indexes = kept.filter(isFirst).sort(([one], [other]) => Number(texts[one]) - Number(texts[other]))
    return [...indexes, ...kept.filter((member) => !isFirst(member))]
  },
  /** Sorts members by the bytes of their keys. */
  sorted: (members, texts) => {
    const bytesOf = ([key]: Member): Buffer => Buffer.from(texts[key] as string)
    return withoutDuplicates(members, texts).toSorted((one, other) => Buffer.compare(bytesOf(one), bytesOf(other)))
  },
} satisfies Record<string, Arrange>

/** Keeps the last of several members with the same key, in the place of the first. */
function withoutDuplicates(members: readonly Member[], texts: readonly string[]): readonly Member[] {
  return [...new Map(members.map((member) => [texts[member[0]], member])).values()]
}

function isIndex(key: string): boolean {
  return /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1
}

const javascript = {
  writeString: (text: string) => JSON.stringify(text),
  writeNumber: numbers.javascript,
  arrange: orders.indexesFirst,
  layout: compact,
}
const python = { writeString: strings.pythonAscii, writeNumber: numbers.python, arrange: orders.asRead, layout: spaced }
const php = { writeString: strings.php, writeNumber: numbers.php, arrange: orders.asRead, layout: compact }
const go = { writeString: strings.go, writeNumber: numbers.go, arrange: orders.sorted, layout: compact }
const ruby = { writeString: strings.minimal, writeNumber: numbers.ruby, arrange: orders.asRead, layout: compact }

/** The serialisers that have been seen in receivers, with the default settings of each language first. */
export const WRITERS: readonly JsonWriter[] = [
  { name: 'JSON.stringify of JavaScript', ...javascript },
  { name: 'json.dumps of Python', ...python },
  { name: 'json_encode of PHP', ...php },
  { name: 'json.Marshal of Go', ...go },
  { name: 'JSON.generate of Ruby', ...ruby },
  { name: 'JSON.stringify of JavaScript with an indent of 2', ...javascript, layout: twoSpaces },
  { name: "json.dumps of Python with separators=(',', ':')", ...python, layout: compact },
  { name: 'json.dumps of Python with ensure_ascii=False', ...python, writeString: strings.minimal },
  {
    name: "json.dumps of Python with ensure_ascii=False, separators=(',', ':')",
    ...python,
    writeString: strings.minimal,
    layout: compact,
  },
  { name: 'json.dumps of Python with sort_keys=True', ...python, arrange: orders.sorted },
  {
    name: "json.dumps of Python with sort_keys=True, separators=(',', ':')",
    ...python,
    arrange: orders.sorted,
    layout: compact,
  },
  { name: 'json_encode of PHP with JSON_UNESCAPED_SLASHES', ...php, writeString: strings.phpSlashes },
  { name: 'json_encode of PHP with JSON_UNESCAPED_UNICODE', ...php, writeString: strings.phpUnicode },
  {
    name: 'json_encode of PHP with JSON_UNESCAPED_SLASHES, JSON_UNESCAPED_UNICODE',
    ...php,
    writeString: strings.phpSlashesUnicode,
  },
  { name: 'json.Marshal of Go with SetEscapeHTML(false)', ...go, writeString: strings.goPlain },
  { name: 'JSON.generate of Ruby with pretty_generate', ...ruby, layout: twoSpaces },
]
