/** Reads JSON and keeps what `JSON.parse` loses: how each number is written, every duplicate of a key, the order of keys. */

/** A value of a JSON text. Strings and numbers are indexes into {@link JsonText}, so that each is rewritten once. */
export type JsonNode =
  | { readonly kind: 'string'; readonly index: number }
  | { readonly kind: 'number'; readonly index: number }
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly JsonNode[] }
  | { readonly kind: 'object'; readonly members: readonly Member[] }

/** A key, as an index into the strings, and its value. */
export type Member = readonly [key: number, value: JsonNode]

/** A JSON text, taken apart. */
export interface JsonText {
  readonly root: JsonNode
  /** Each distinct string, decoded. Two that are escaped differently are distinct. */
  readonly strings: readonly string[]
  /** The same strings as they are written, with quotation marks. */
  readonly lexemes: readonly string[]
  /** Each distinct number, as it is written. */
  readonly numbers: readonly string[]
}

/** Deeper values are not read: serialisers refuse them too. */
const DEPTH_LIMIT = 500

/** Takes JSON apart. Undefined for what is not strictly JSON, and for what is nested more than 500 deep. */
export function readJsonText(text: string): JsonText | undefined {
  try {
    JSON.parse(text) // The scanner takes the grammar for granted.
    return new Scanner(text).read()
  } catch {
    return undefined
  }
}

class Scanner {
  readonly #text: string
  readonly #strings = new Table()
  readonly #numbers = new Table()
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): JsonText {
    this.#toToken()
    const root = this.#readValue(0)
    const lexemes = this.#strings.values
    const strings = lexemes.map((lexeme): string => (lexeme.includes('\\') ? JSON.parse(lexeme) : lexeme.slice(1, -1)))
    return { root, strings, lexemes, numbers: this.#numbers.values }
  }

  /** Skips white space, commas and colons. Returns the character of the next token. */
  #toToken(): string {
    while (' \t\r\n,:'.includes(this.#text.charAt(this.#at))) this.#at += 1
    return this.#text.charAt(this.#at)
  }

  #readValue(depth: number): JsonNode {
    if (depth > DEPTH_LIMIT) throw new RangeError()
    const char = this.#text.charAt(this.#at)
    if (char === '[') return this.#readList(depth)
    if (char === '{') return this.#readObject(depth)
    if (char === '"') return { kind: 'string', index: this.#readString() }
    const start = this.#at
    while (!' \t\r\n,]}'.includes(this.#text.charAt(this.#at))) this.#at += 1
    const token = this.#text.slice(start, this.#at)
    if ('tfn'.includes(char)) return { kind: 'literal', text: token }
    return { kind: 'number', index: this.#numbers.add(token) }
  }

  #readList(depth: number): JsonNode {
    const items: JsonNode[] = []
    this.#at += 1
    while (this.#toToken() !== ']') {
      items.push(this.#readValue(depth + 1))
    }
    this.#at += 1
    return { kind: 'list', items }
  }

  #readObject(depth: number): JsonNode {
    const members: Member[] = []
    this.#at += 1
    while (this.#toToken() !== '}') {
      const key = this.#readString()
      this.#toToken()
      members.push([key, this.#readValue(depth + 1)])
    }
    this.#at += 1
    return { kind: 'object', members }
  }

  #readString(): number {
    const start = this.#at
    do this.#at = this.#text.indexOf('"', this.#at + 1)
    while (this.#isEscaped())
    this.#at += 1
    return this.#strings.add(this.#text.slice(start, this.#at))
  }

  /** Whether an odd number of backslashes stands before this place. */
  #isEscaped(): boolean {
    let before = this.#at - 1
    while (this.#text[before] === '\\') before -= 1
    return (this.#at - before) % 2 === 0
  }
}

/** Distinct texts, by index. */
class Table {
  readonly values: string[] = []
  readonly #indexes = new Map<string, number>()

  add(text: string): number {
    const known = this.#indexes.get(text)
    if (known !== undefined) return known
    this.#indexes.set(text, this.values.length)
    return this.values.push(text) - 1
  }
}
