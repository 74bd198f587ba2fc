/** The serialisers that people use: what each does to strings, numbers, the order of members and white space. */

import {
  compact,
  type JsonNode,
  type JsonText,
  type Layout,
  type Member,
  readJsonText,
  spaced,
  twoSpaces,
  writeJson,
} from './json-text.ts'

/** Writes a string, with its quotation marks. Undefined for one that the serialiser refuses. */
type WriteString = (text: string, token: string) => string | undefined

type WriteNumber = (token: string) => string | undefined

type Arrange = (members: readonly Member[], texts: readonly string[]) => JsonNode

export interface JsonWriter {
  /** As a reader knows it: "json.dumps of Python with sort_keys=True". */
  readonly name: string
  readonly string: WriteString
  readonly number: WriteNumber
  readonly order: Arrange
  readonly layout: Layout
}

export type Rewrite = (writer: JsonWriter) => string | undefined

/** Prepares a text for the serialisers: what several of them do alike is done once. Undefined for what is no JSON. */
export function rewriterOf(text: string, limit?: number): Rewrite | undefined {
  const json = readJsonText(text)
  if (json === undefined) return undefined
  const roots = new Map<unknown, JsonNode>()
  const lists = new Map<unknown, readonly string[] | undefined>()
  const arranged = memoize((order: Arrange) => {
    const root = arrange(json, order)
    return unify(roots, writeJson(root, json.tokens, compact), root)
  })
  const written = memoize((string: WriteString) =>
    memoize((number: WriteNumber) => {
      const tokens = writeTokens(json, string, number)
      return unify(lists, tokens?.join(), tokens)
    }),
  )
  const result = memoize((tokens: readonly string[] | undefined) =>
    memoize((root: JsonNode) => memoize((layout: Layout) => tokens && writeJson(root, tokens, layout, limit))),
  )
  return ({ string, number, order, layout }) => result(written(string)(number))(arranged(order))(layout)
}

function writeTokens(
  { tokens, texts }: JsonText,
  writeString: WriteString,
  writeNumber: WriteNumber,
): readonly string[] | undefined {
  const written: string[] = []
  for (const [index, token] of tokens.entries()) {
    let result: string | undefined = token
    if (token.startsWith('"')) result = writeString(texts[index] as string, token)
    else if (!/^[tfn]/.test(token)) result = writeNumber(token)
    if (result === undefined) return undefined
    written.push(result)
  }
  return written
}

function arrange({ root, texts }: JsonText, order: Arrange): JsonNode {
  const visit = (node: JsonNode): JsonNode => {
    if (typeof node === 'number') return node
    if ('items' in node) return { items: node.items.map(visit) }
    return order(
      node.members.map(([key, value]) => [key, visit(value)]),
      texts,
    )
  }
  return visit(root)
}

function unify<Value>(firsts: Map<unknown, Value>, print: unknown, value: Value): Value {
  if (!firsts.has(print)) firsts.set(print, value)
  return firsts.get(print) as Value
}

function memoize<Argument, Result>(make: (argument: Argument) => Result): (argument: Argument) => Result {
  const made = new Map<Argument, Result>()
  return (argument) => {
    if (!made.has(argument)) made.set(argument, make(argument))
    return made.get(argument) as Result
  }
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

/** Escapes what the pattern matches: in short where JSON has a short form, else as `\u` and four lowercase digits. */
function escaping(pattern: RegExp, short: Readonly<Record<string, string>> = SHORT): WriteString {
  const escapeChar = (char: string): string => short[char] ?? escapeUnit(char)
  return (text) => `"${text.replace(pattern, escapeChar)}"`
}

function escapeUnit(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Without lone surrogates, which have no UTF-8. */
function wellFormed(write: WriteString): WriteString {
  return (text, token) => (text.isWellFormed() ? write(text, token) : undefined)
}

const { '\b': _backspace, '\f': _formFeed, ...SHORT_OF_OLD_GO } = SHORT

/* biome-ignore-start lint/suspicious/noControlCharactersInRegex: they are what must be escaped. */
const strings = {
  asWritten: (_text, token) => token,
  javascript: (text) => JSON.stringify(text),
  pythonAscii: escaping(/["\\\0-\x1f\x7f-\uffff]/g),
  minimal: wellFormed(escaping(/["\\\0-\x1f]/g)),
  php: wellFormed(escaping(/["\\/\0-\x1f\x80-\uffff]/g)),
  phpSlashes: wellFormed(escaping(/["\\\0-\x1f\x80-\uffff]/g)),
  phpUnicode: wellFormed(escaping(/["\\/\0-\x1f\u2028\u2029]/g)),
  phpSlashesUnicode: wellFormed(escaping(/["\\\0-\x1f\u2028\u2029]/g)),
  rubySlashes: wellFormed(escaping(/["\\/\0-\x1f]/g)),
  rubyAscii: wellFormed(escaping(/["\\\0-\x1f\x80-\uffff]/g)),
  rails: wellFormed(escaping(/["\\\0-\x1f<>&\u2028\u2029]/g)),
  // Lone surrogates become U+FFFD when the text is encoded; Go does so when it decodes.
  go: escaping(/["\\\0-\x1f<>&\u2028\u2029]/g),
  goPlain: escaping(/["\\\0-\x1f\u2028\u2029]/g),
  oldGo: escaping(/["\\\0-\x1f<>&\u2028\u2029]/g, SHORT_OF_OLD_GO),
  oldGoPlain: escaping(/["\\\0-\x1f\u2028\u2029]/g, SHORT_OF_OLD_GO),
  /** Escapes for HTML even in JSON that it passes on. */
  goPassedOn: (_text, token) => token.replace(/[<>&\u2028\u2029]/g, escapeUnit),
} satisfies Record<string, WriteString>
/* biome-ignore-end lint/suspicious/noControlCharactersInRegex: they are what must be escaped. */

interface NumberForm {
  /** A float that is as large, or smaller than 0.0001, has an exponent. */
  readonly below: number
  /** What stands between a single digit and its exponent. */
  readonly fraction?: string
  readonly exponentDigits?: number
  isInteger?(token: string): boolean
  writeInfinity?(value: number): string
}

/** Keeps integers of any size, and shows that a float is one. */
function integersAndFloats({
  below,
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
    if (size === 0 || (size >= 1e-4 && size < below)) {
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

/** The shortest digits that read back as the value; every language finds the same ones. */
function writeDouble(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

const rubyNumber = integersAndFloats({ below: 1e15, fraction: '.0' })
const phpNumber = integersAndFloats({ below: 1e17, fraction: '.0', exponentDigits: 1, isInteger: isOf64Bits })

/** Infinity is refused where nothing else is said. */
const numbers = {
  asWritten: (token) => token,
  /** Infinity is `null`, and zero has no sign. */
  javascript: (token) => JSON.stringify(Number(token)),
  go: (token) => (Number.isFinite(Number(token)) ? writeDouble(Number(token)) : undefined),
  python: integersAndFloats({ below: 1e16, writeInfinity: String }),
  ruby: rubyNumber,
  rails: (token) => rubyNumber(token) ?? 'null',
  /** With `JSON_PRESERVE_ZERO_FRACTION`. */
  phpZeroFraction: phpNumber,
  php: (token) => phpNumber(token)?.replace(/\.0$/, ''),
} satisfies Record<string, WriteNumber>

const orders = {
  /** Duplicates included. */
  asWritten: (members) => ({ members }),
  asRead: (members, texts) => ({ members: withoutDuplicates(members, texts) }),
  /** As JavaScript has it: keys that are an index of an array come first, ascending. */
  indexesFirst: (members, texts) => {
    const places = new Map(withoutDuplicates(members, texts).map((member) => [texts[member[0]] as string, member]))
    const indexes = [...places.keys()].filter(isIndex).sort((one, other) => Number(one) - Number(other))
    return { members: [...new Set([...indexes, ...places.keys()])].map((key) => places.get(key) as Member) }
  },
  /** By the UTF-16 of the keys, as `sort()` of JavaScript does. */
  sortedByUnits: (members, texts) => sort(members, texts, (one, other) => (one < other ? -1 : 1)),
  /** By the bytes of the keys, as Python, Go and Ruby do: that differs from UTF-16 for surrogates only. */
  sortedByBytes: (members, texts) =>
    sort(members, texts, (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))),
  /** `json_decode($json, true)`: an object with the keys 0, 1, 2 … in this order, and so an empty one, becomes a list. */
  phpArrays: (members, texts) => {
    const read = withoutDuplicates(members, texts)
    const isList = read.every(([key], place) => texts[key] === String(place))
    return isList ? { items: read.map(([, value]) => value) } : { members: read }
  },
} satisfies Record<string, Arrange>

/** The last of duplicates, in the place of the first. */
function withoutDuplicates(members: readonly Member[], texts: readonly string[]): readonly Member[] {
  return [...new Map(members.map((member) => [texts[member[0]], member])).values()]
}

function sort(
  members: readonly Member[],
  texts: readonly string[],
  compare: (one: string, other: string) => number,
): JsonNode {
  const keyOf = ([key]: Member): string => texts[key] as string
  return { members: [...withoutDuplicates(members, texts)].sort((one, other) => compare(keyOf(one), keyOf(other))) }
}

function isIndex(key: string): boolean {
  return /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1
}

const fourSpaces: Layout = { ...twoSpaces, indent: '    ' }
const tabs: Layout = { ...twoSpaces, indent: '\t' }
/** Ruby's `pretty_generate` of json 2.6 and older, which opens a line for what is empty. */
const oldRuby: Layout = {
  ...twoSpaces,
  empty: (brackets, margin) => `${brackets[0]}\n${brackets === '[]' ? '\n' : ''}${margin}${brackets[1]}`,
}

/** The settings of one kind, by what a reader sees of them: nothing for the default. */
type Settings<Value> = Readonly<Record<string, Value>>

interface Family {
  readonly name: string
  readonly string: Settings<WriteString>
  readonly number: Settings<WriteNumber>
  readonly order: Settings<Arrange>
  readonly layout: Settings<Layout>
}

const GO_LAYOUTS = {
  '': compact,
  'an indent of two spaces': twoSpaces,
  'an indent of four spaces': fourSpaces,
  'an indent of a tab': tabs,
}

const FAMILIES: readonly Family[] = [
  {
    name: 'JSON.stringify of JavaScript',
    string: { '': strings.javascript },
    number: { '': numbers.javascript },
    order: { '': orders.indexesFirst, 'sorted keys': orders.sortedByUnits },
    layout: {
      '': compact,
      'an indent of 2': twoSpaces,
      'an indent of 4': fourSpaces,
      'an indent of a tab': tabs,
    },
  },
  {
    name: 'json.dumps of Python',
    string: { '': strings.pythonAscii, 'ensure_ascii=False': strings.minimal },
    number: { '': numbers.python },
    order: { '': orders.asRead, 'sort_keys=True': orders.sortedByBytes },
    layout: {
      '': spaced,
      "separators=(',', ':')": compact,
      'indent=2': twoSpaces,
      'indent=4': fourSpaces,
      "indent='\\t'": tabs,
    },
  },
  {
    name: 'json_encode of PHP',
    string: {
      '': strings.php,
      JSON_UNESCAPED_SLASHES: strings.phpSlashes,
      JSON_UNESCAPED_UNICODE: strings.phpUnicode,
      'JSON_UNESCAPED_SLASHES, JSON_UNESCAPED_UNICODE': strings.phpSlashesUnicode,
    },
    number: { '': numbers.php, JSON_PRESERVE_ZERO_FRACTION: numbers.phpZeroFraction },
    order: { '': orders.asRead, 'json_decode into arrays': orders.phpArrays },
    layout: { '': compact, JSON_PRETTY_PRINT: fourSpaces },
  },
  {
    name: 'json.Marshal of Go',
    string: {
      '': strings.go,
      'SetEscapeHTML(false)': strings.goPlain,
      'a Go before 1.22': strings.oldGo,
      'SetEscapeHTML(false), a Go before 1.22': strings.oldGoPlain,
    },
    number: { '': numbers.go, 'UseNumber()': numbers.asWritten },
    order: { '': orders.sortedByBytes },
    layout: GO_LAYOUTS,
  },
  {
    name: 'JSON.generate of Ruby',
    string: {
      '': strings.minimal,
      'script_safe: true': strings.phpUnicode,
      'escape_slash: true': strings.rubySlashes,
      'ascii_only: true': strings.rubyAscii,
    },
    number: { '': numbers.ruby },
    order: { '': orders.asRead, 'sorted keys': orders.sortedByBytes },
    layout: { '': compact, pretty_generate: twoSpaces, 'pretty_generate of json 2.6': oldRuby },
  },
  {
    name: 'to_json of Rails',
    string: { '': strings.rails },
    number: { '': numbers.rails },
    order: { '': orders.asRead },
    layout: { '': compact },
  },
  {
    name: 'a formatter that changes white space only',
    string: { '': strings.asWritten, 'escapes for HTML, as json.RawMessage of Go': strings.goPassedOn },
    number: { '': numbers.asWritten },
    order: { '': orders.asWritten, 'sorted keys': orders.sortedByBytes },
    layout: { ...GO_LAYOUTS, 'a space after commas and colons': spaced },
  },
  {
    name: 'a serialiser that keeps numbers as they are written',
    string: { '': strings.minimal, 'escapes for ASCII': strings.pythonAscii },
    number: { '': numbers.asWritten },
    order: { '': orders.asRead, 'sorted keys': orders.sortedByBytes },
    layout: { ...GO_LAYOUTS, 'a space after commas and colons': spaced },
  },
]

export const WRITERS: readonly JsonWriter[] = FAMILIES.flatMap(combine)
  .sort((one, other) => one.settings - other.settings)
  .map(({ writer }) => writer)

function combine(family: Family): { readonly settings: number; readonly writer: JsonWriter }[] {
  const found = []
  for (const [order, arrange] of Object.entries(family.order)) {
    for (const [escapes, string] of Object.entries(family.string)) {
      for (const [format, number] of Object.entries(family.number)) {
        for (const [space, layout] of Object.entries(family.layout)) {
          const set = [order, escapes, format, space].filter((setting) => setting !== '')
          const name = set.length === 0 ? family.name : `${family.name} with ${set.join(', ')}`
          found.push({ settings: set.length, writer: { name, string, number, order: arrange, layout } })
        }
      }
    }
  }
  return found
}
