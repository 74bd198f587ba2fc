/** Splits JSON into tokens and writes it again. Keeps the form of each token and the order of all members, unlike `JSON.parse`. */

import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  endOfToken,
  OPEN_ARRAY,
  OPEN_OBJECT,
  skipSpace,
} from '../json-tokens.ts'

/** The index of a token in `tokens` and `texts` of a {@link JsonText}. Equal tokens have the same index. */
type TokenIndex = number

/** A JSON value: the index of the token of a string, a number or a literal; or an array or an object. */
export type JsonNode = TokenIndex | { readonly items: readonly JsonNode[] } | { readonly members: readonly Member[] }

export type Member = readonly [key: TokenIndex, value: JsonNode]

export interface JsonText {
  readonly root: JsonNode
  readonly tokens: readonly string[]
  /** The tokens with their strings decoded. Tokens that differ only in how they are escaped have the same text here. */
  readonly texts: readonly string[]
}

/** The maximum nesting depth of a value that is read. Serialisers refuse deeper values, too. */
const MAX_DEPTH = 500

/** Splits JSON into tokens. Returns undefined for text that is not strictly JSON, and for values nested more than 500 levels deep. */
export function readJsonText(text: string): JsonText | undefined {
  try {
    JSON.parse(text)
    return parseTokens(Buffer.from(text))
  } catch {
    return undefined
  }
}

/** Reads JSON that `JSON.parse` has already checked. */
function parseTokens(bytes: Buffer): JsonText {
  const indexes = new Map<string, TokenIndex>()
  let at = 0

  /** Moves to the next token, past a comma or a colon, and returns its first byte. */
  function skipToToken(): number | undefined {
    at = skipSpace(bytes, at)
    if (bytes[at] === COMMA || bytes[at] === COLON) at = skipSpace(bytes, at + 1)
    return bytes[at]
  }

  function readToken(): TokenIndex {
    const start = at
    at = endOfToken(bytes, at)
    const token = bytes.toString('utf8', start, at)
    const index = indexes.get(token) ?? indexes.size
    indexes.set(token, index)
    return index
  }

  function readValue(depth: number): JsonNode {
    if (depth > MAX_DEPTH) throw new RangeError()
    const byte = skipToToken()
    if (byte === OPEN_ARRAY) {
      const items: JsonNode[] = []
      for (at++; skipToToken() !== CLOSE_ARRAY; ) items.push(readValue(depth + 1))
      at++
      return { items }
    }
    if (byte === OPEN_OBJECT) {
      const members: Member[] = []
      for (at++; skipToToken() !== CLOSE_OBJECT; ) members.push([readToken(), readValue(depth + 1)])
      at++
      return { members }
    }
    return readToken()
  }

  const root = readValue(0)
  const tokens = [...indexes.keys()]
  return { root, tokens, texts: tokens.map((token) => (token.startsWith('"') ? JSON.parse(token) : token)) }
}

export interface Layout {
  readonly comma: string
  readonly colon: string
  /** The text of one level of indentation; without it, everything is on one line. */
  readonly indent?: string
}

export const compact: Layout = { comma: ',', colon: ':' }
export const spaced: Layout = { comma: ', ', colon: ': ' }
export const twoSpaces: Layout = { comma: ',', colon: ': ', indent: '  ' }

/**
 * Changes only the white space of JSON. Returns undefined if {@link readJsonText} or {@link writeJson} does.
 */
export function layOut(text: string, layout: 'spaced' | 'indented', limit?: number): string | undefined {
  const json = readJsonText(text)
  return json && writeJson(json.root, json.tokens, layout === 'spaced' ? spaced : twoSpaces, limit)
}

/**
 * Writes a value. Returns undefined for a result of more than `limit` characters: indentation can make deeply nested JSON hundreds of times
 * as long.
 */
export function writeJson(
  root: JsonNode,
  tokens: readonly string[],
  { comma, colon, indent }: Layout,
  limit: number = Number.POSITIVE_INFINITY,
): string | undefined {
  let text = ''
  const newLine = (margin: string): string => (indent === undefined ? '' : `\n${margin}`)

  function write(node: JsonNode, margin: string): void {
    if (typeof node === 'number') text += tokens[node]
    else if ('items' in node) writeAll('[]', node.items, margin, write)
    else {
      writeAll('{}', node.members, margin, ([key, value], inner) => {
        text += tokens[key] + colon
        write(value, inner)
      })
    }
  }

  function writeAll<Part>(
    brackets: string,
    parts: readonly Part[],
    margin: string,
    writePart: (part: Part, margin: string) => void,
  ): void {
    if (parts.length === 0) {
      text += brackets
      return
    }
    const inner = margin + (indent ?? '')
    text += brackets[0] + newLine(inner)
    for (const [index, part] of parts.entries()) {
      if (text.length > limit) return
      if (index > 0) text += comma + newLine(inner)
      writePart(part, inner)
    }
    text += newLine(margin) + brackets[1]
  }

  write(root, '')
  return text.length > limit ? undefined : text
}
