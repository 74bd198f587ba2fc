/** The table of runtimes in docs/hosts.md, made from the tests that passed. */

import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

export type Verdict = 'yes' | 'refuses'

/** Of a row that a runtime has no test of. */
const NONE = '–'

const ROWS = {
  http: 'Receive on `node:http`',
  frameworks: 'Receive on Express, Koa and Fastify',
  fetch: "Receive on the runtime's own server, with `hookline/fetch`",
  collect: 'Collect, from compressed bodies too',
  kv: 'Inbox over [a store of yours](engines.md)',
  sqlite: 'Inbox and destination on SQLite, after a kill',
  bullmq: 'Inbox on BullMQ',
  'pg-boss': 'Inbox on pg-boss',
  send: 'Send: the five-second timeout, retries, the circuit',
  certificates: 'Certificates: self-signed, expired and for another name refused',
  addresses: 'Private addresses refused',
  client: 'Client, through a collector to a receiver',
  end: 'The process ends by itself after `close`',
} as const

export type Row = keyof typeof ROWS

const columns: string[] = []
const cells = new Map<string, { declared: number; passed: number; verdict: Verdict }>()
/** What the page has to quote. */
const sentences = new Set<string>()

export function quote(sentence: string): void {
  sentences.add(sentence)
}

/** Declares a test of what a runtime does. Its cell has the verdict when all its tests passed. */
export function check(row: Row, column: string, name: string, test: () => unknown, verdict: Verdict = 'yes') {
  if (!columns.includes(column)) columns.push(column)
  const key = `${row} ${column}`
  const cell = cells.get(key) ?? { declared: 0, passed: 0, verdict }
  cells.set(key, cell)
  cell.declared += 1
  it(name, async () => {
    await test()
    cell.passed += 1
  })
}

export function checkPage(page: URL): void {
  it('says what these tests saw', async () => {
    const text = await readFile(page, 'utf8')
    const lines = text.split('\n')
    const table = toTable()
    const start = lines.indexOf(table[0] ?? '')
    expect(lines.slice(start, start + table.length)).toEqual(table)
    for (const sentence of sentences) expect(text.replace(/\s+/g, ' ')).toContain(sentence)
  })
}

function toTable(): readonly string[] {
  const rows = Object.entries(ROWS).map(([row, name]) => [name, ...columns.map((column) => read(`${row} ${column}`))])
  return [['', ...columns], ['---', ...columns.map(() => ':-:')], ...rows].map((row) => `| ${row.join(' | ')} |`)
}

function read(key: string): string {
  const cell = cells.get(key)
  if (cell === undefined) return NONE
  return cell.passed === cell.declared ? cell.verdict : 'failed'
}
