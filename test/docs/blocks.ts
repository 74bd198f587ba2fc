/** The code blocks of a Markdown text, and which way each is tested. */

import type { Need } from '../support/last-lines.ts'

export interface Block {
  /** Where it stands, for the name of a test: `docs/errors.md:12`. */
  readonly place: string
  readonly language: string
  readonly file?: string
  readonly code: string
}

export type Kind = 'script' | 'vitest' | 'node:test' | 'json' | 'config' | 'shell' | 'command' | 'example' | 'followed'

/** The guides that a test follows word for word: their commands really run, and the output and diffs that they show are compared. */
export const FOLLOWED: readonly string[] = ['README.md', 'docs/start.md', 'docs/moving.md']

/** Finds the fenced blocks. */
export function extractBlocks(name: string, markdown: string): Block[] {
  const blocks: Block[] = []
  let open: { fence: string; indent: number; info: string; line: number; code: string[] } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    const [, indent = '', fence = '', info = ''] = /^( *)(```+)([^`]*)$/.exec(line) ?? []
    if (open === undefined) {
      if (fence !== '') open = { fence, indent: indent.length, info: info.trim(), line: index + 1, code: [] }
    } else if (fence.startsWith(open.fence) && info === '') {
      const [, language = open.info, file] = /^(\S*)(?: +\[(\S+)\])?$/.exec(open.info) ?? []
      const code = `${open.code.join('\n')}\n`
      blocks.push({ place: `${name}:${open.line}`, language, ...(file !== undefined && { file }), code })
      open = undefined
    } else {
      open.code.push(line.slice(open.indent))
    }
  }
  if (open !== undefined) throw new Error(`${name}:${open.line}: this block is not closed.`)
  return blocks
}

/** Says how to test a block. */
export function kindOf({ place, language, file, code }: Block): Kind {
  if (file?.startsWith('examples/')) return 'example'
  if (/^(sh|text|diff)$/.test(language) && FOLLOWED.some((guide) => place.startsWith(`${guide}:`))) return 'followed'
  switch (language) {
    case 'ts':
    case 'js':
    case 'cjs':
      if (/from 'vitest'/.test(code)) return 'vitest'
      return /from 'node:test'/.test(code) ? 'node:test' : 'script'
    case 'json':
      return 'json'
    case 'dockerfile':
    case 'ini':
    case 'nginx':
    case 'yaml':
      return 'config'
    case 'sh':
      return /\bnpx hookline\b/.test(code) ? 'command' : 'shell' // tools/command/test/examples.process.test.ts runs the command.
    default:
      throw new Error(`${place}: no test knows blocks in '${language}'.`)
  }
}

export function fileName(block: Block): string {
  if (block.file !== undefined) return block.file
  const stem = block.place.replaceAll(/[^A-Za-z0-9]+/g, '-')
  return `${stem}${kindOf(block) === 'vitest' ? '.test' : ''}.${block.language}`
}

export function programsOf({ code, language }: Block): Need[] {
  return language === 'sh' && /\bopenssl\b/.test(code) ? ['openssl'] : []
}

/** Changes the one place of a text that has the lines that a diff keeps and removes. */
export function applyDiff(text: string, diff: string): string {
  const lines = diff.trimEnd().split('\n')
  const [before, after] = ['+', '-'].map((sign) =>
    lines.filter((line) => line[0] !== sign).map((line) => line.slice(1)),
  )
  const parts = text.split(before?.join('\n') ?? '')
  if (parts.length !== 2) throw new Error(`the diff fits ${parts.length - 1} places`)
  return parts.join(after?.join('\n'))
}
