/** JSON as it is written: numbers keep their digits, objects their order and their repeated keys. */

/** A value of JSON. */
export type Json =
  | { readonly kind: 'object'; readonly entries: readonly Entry[] }
  | { readonly kind: 'array'; readonly items: readonly Json[] }
  | { readonly kind: 'string'; readonly value: string }
  /** A number, `true`, `false` or `null`. */
  | { readonly kind: 'literal'; readonly text: string }

interface Entry {
  readonly key: string
  readonly value: Json
}

/** An object or an array that is being read. */
type Open =
  | { readonly kind: 'object'; readonly entries: Entry[]; key: string | undefined }
  | { readonly kind: 'array'; readonly items: Json[] }

/**
 * Parses JSON, nested however deep.
 *
 * @throws SyntaxError of the browser.
 */
export function parseJson(text: string): Json {
  JSON.parse(text)
  const open: Open[] = []
  let root: Json | undefined
  const add = (value: Json): void => {
    const parent = open.at(-1)
    if (parent === undefined) root = value
    else if (parent.kind === 'array') parent.items.push(value)
    else {
      parent.entries.push({ key: parent.key ?? '', value })
      parent.key = undefined
    }
  }
  const begin = (value: Open): void => {
    add(value)
    open.push(value)
  }
  // The text is correct: only where each token ends is to be found.
  for (let at = 0; at < text.length; ) {
    const character = text.charAt(at)
    if (character === '"') {
      const end = findQuote(text, at + 1) + 1
      const value: string = JSON.parse(text.slice(at, end))
      const parent = open.at(-1)
      if (parent?.kind === 'object' && parent.key === undefined) parent.key = value
      else add({ kind: 'string', value })
      at = end
    } else if (/[-0-9a-z]/.test(character)) {
      const end = findEnd(text, at)
      add({ kind: 'literal', text: text.slice(at, end) })
      at = end
    } else {
      if (character === '{') begin({ kind: 'object', entries: [], key: undefined })
      else if (character === '[') begin({ kind: 'array', items: [] })
      else if (character === '}' || character === ']') open.pop()
      at += 1
    }
  }
  return root as Json
}

function findQuote(text: string, from: number): number {
  for (let at = from; ; at += 1) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at
    if (code === 0x5c) at += 1
  }
}

function findEnd(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && /[-+.0-9a-zA-Z]/.test(text.charAt(at))) at += 1
  return at
}

/** How many values an object or an array has. */
export function sizeOf(json: Json): number {
  if (json.kind === 'object') return json.entries.length
  return json.kind === 'array' ? json.items.length : 0
}

/** The values of an object or an array with their keys; of a string or a literal none. */
export function childrenOf(json: Json): readonly { readonly key: string | number; readonly value: Json }[] {
  if (json.kind === 'object') return json.entries
  return json.kind === 'array' ? json.items.map((value, key) => ({ key, value })) : []
}

/** The beginning of a value as text. */
export function excerptOf(json: Json, most = 80): string {
  if (json.kind === 'literal') return cut(json.text, most)
  if (json.kind === 'string') return JSON.stringify(cut(json.value, most))
  const [first, last] = json.kind === 'object' ? ['{', '}'] : ['[', ']']
  let text = ''
  for (const { key, value } of childrenOf(json)) {
    const name = typeof key === 'string' ? `${JSON.stringify(key)}: ` : ''
    const left = most - text.length - name.length
    if (left <= 0) return `${first}${text}${text === '' ? '' : ', '}…${last}`
    text += `${text === '' ? '' : ', '}${name}${excerptOf(value, Math.max(0, left - 4))}`
  }
  return `${first}${text}${last}`
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text
}
