/** Writes a JSON text again: its white space, and what the strings and the numbers have become. */

import type { JsonNode } from './json-text.ts'

/** The white space of a serialiser. */
export interface Layout {
  readonly comma: string
  readonly colon: string
  /** One step of indentation; without it, all is on one line. */
  readonly indent?: string
  /** How an empty list and an empty object are written at an indentation. */
  readonly empty?: (brackets: string, margin: string) => string
}

export const compact: Layout = { comma: ',', colon: ':' }
export const spaced: Layout = { comma: ', ', colon: ': ' }
export const twoSpaces: Layout = { comma: ',', colon: ': ', indent: '  ' }
export const fourSpaces: Layout = { comma: ',', colon: ': ', indent: '    ' }
export const tabs: Layout = { comma: ',', colon: ': ', indent: '\t' }

/** Ruby's `pretty_generate` of json 2.6 and older, which opens a line for what is empty. */
export const oldRuby: Layout = {
  ...twoSpaces,
  empty: (brackets, margin) => `${brackets[0]}\n${brackets === '[]' ? '\n' : ''}${margin}${brackets[1]}`,
}

/** What the strings and the numbers of a text are written as, by index. */
export interface Written {
  readonly strings: readonly string[]
  readonly numbers: readonly string[]
}

/**
 * Writes a value. Undefined for more than `limit` characters: the indentation of what is nested deep makes a text hundreds of
 * times as long.
 */
export function writeJson(
  root: JsonNode,
  { strings, numbers }: Written,
  layout: Layout,
  limit = Number.POSITIVE_INFINITY,
): string | undefined {
  let text = ''
  const margins = ['']
  const marginAt = (depth: number): string => {
    while (margins.length <= depth) margins.push(`${margins.at(-1)}${layout.indent}`)
    return layout.indent === undefined ? '' : `\n${margins[depth]}`
  }

  const write = (node: JsonNode, depth: number): void => {
    if (node.kind === 'string') text += strings[node.index]
    else if (node.kind === 'number') text += numbers[node.index]
    else if (node.kind === 'literal') text += node.text
    else if (node.kind === 'list') writeAll('[', node.items, ']', depth, (item) => write(item, depth + 1))
    else
      writeAll('{', node.members, '}', depth, ([key, value]) => {
        text += strings[key] + layout.colon
        write(value, depth + 1)
      })
  }

  const writeAll = <Part>(
    open: string,
    parts: readonly Part[],
    close: string,
    depth: number,
    writePart: (part: Part) => void,
  ): void => {
    if (parts.length === 0) {
      text += layout.empty?.(open + close, `${margins[depth]}`) ?? open + close
      return
    }
    const line = marginAt(depth + 1)
    text += open + line
    const separator = layout.comma + line
    for (let index = 0; index < parts.length && text.length <= limit; index += 1) {
      if (index > 0) text += separator
      writePart(parts[index] as Part)
    }
    text += marginAt(depth) + close
  }

  write(root, 0)
  return text.length > limit ? undefined : text
}
