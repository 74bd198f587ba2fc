/** Reads tracking plans in Terraform's configuration language, without variables, functions or templates. */

import { UsageError } from '../terminal.ts'

const RESOURCE = /^[ \t]*resource\s+"segment_tracking_plan"\s+"[^"\n]*"\s*\{/gm
/** Matches white space and comments between tokens. */
const GAP = /(?:\s|#.*|\/\/.*|\/\*[\s\S]*?\*\/)*/y
const TOKEN = /[[\]{}(),=:]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_][\w-]*|<<-?[A-Za-z_]\w*\r?\n|"(?:[^"\\\n]|\\.)*"/y

/** Returns whether a text contains a tracking plan as a Terraform resource. */
export function isTerraform(text: string): boolean {
  return text.search(RESOURCE) !== -1
}

/**
 * Reads the `rules` of each tracking plan.
 *
 * @throws UsageError for an expression that only Terraform can evaluate.
 */
export function readTerraform(text: string, name: string): unknown[] {
  return [...text.matchAll(RESOURCE)].map(({ index, 0: head }) => {
    const rest = text.slice(index + head.length).split(RESOURCE)[0] ?? ''
    const found = /^[ \t]*rules\s*=/m.exec(rest)
    if (found === null)
      throw new UsageError(`${name}: a segment_tracking_plan must have \`rules\`. Add them, or pass another file.`)
    return { rules: readValue(text, index + head.length + found.index + found[0].length, name) }
  })
}

function readValue(text: string, start: number, name: string): unknown {
  let at = start

  function peek(): string {
    GAP.lastIndex = at
    at += GAP.exec(text)?.[0].length ?? 0
    TOKEN.lastIndex = at
    return TOKEN.exec(text)?.[0] ?? ''
  }

  function next(): string {
    const token = peek()
    at += token.length
    return token
  }

  function fail(): never {
    const line = text.slice(0, at).split('\n').length
    const advice = 'Pass the output of `terraform show -json`, or the JSON file that the configuration reads.'
    throw new UsageError(`${name}: line ${line} must be a plain value, not an expression. ${advice}`)
  }

  function expect(token: string): void {
    if (next() !== token) fail()
  }

  function value(): unknown {
    const token = next()
    if (token === '[') return list()
    if (token === '{') return object()
    if (token.startsWith('"')) return textOf(token)
    if (token.startsWith('<<')) return heredoc(token)
    if (token in WORDS) return WORDS[token]
    if (/^-?\d/.test(token)) return Number(token)
    if (token !== 'jsonencode') return fail()
    expect('(')
    const encoded = value()
    expect(')')
    return encoded
  }

  function list(): unknown[] {
    const items: unknown[] = []
    while (peek() !== ']') {
      items.push(value())
      if (peek() !== ']') expect(',')
    }
    expect(']')
    return items
  }

  function object(): object {
    const entries: [string, unknown][] = []
    while (peek() !== '}') {
      const key = next()
      if (!/^["A-Za-z_]/.test(key) || !/^[=:]$/.test(next())) fail()
      entries.push([key.startsWith('"') ? textOf(key) : key, value()])
      if (peek() === ',') next()
    }
    expect('}')
    return Object.fromEntries(entries)
  }

  /** Returns the text of a string token. `${` starts an expression; `$${` stands for the text `${`. */
  function textOf(token: string): string {
    if (/(^|[^$%])[$%]\{/.test(token)) fail()
    try {
      return (JSON.parse(token) as string).replace(/([$%])\1\{/g, '$1{')
    } catch {
      return fail()
    }
  }

  function heredoc(token: string): string {
    const word = token.replace(/^<<-?/, '').trim()
    const end = new RegExp(`^[ \\t]*${word}[ \\t]*$`, 'm').exec(text.slice(at))
    if (end === null) return fail()
    const lines = text.slice(at, at + end.index)
    at += end.index + end[0].length
    return /[$%]\{/.test(lines) ? fail() : lines
  }

  return value()
}

const WORDS: Readonly<Record<string, unknown>> = { __proto__: null, true: true, false: false, null: null }
