/** What a SQLite inbox costs a receiver, and its history. No program is pinned but the load: an inbox syncs its file off the thread. */

import { tmpdir } from 'node:os'
import { startServer } from '../http/start.ts'
import { type EngineName, titles } from '../queues/place.ts'
import { isThere, withPlaces } from '../queues/places.ts'
import { compare, figures, type Plan, type RoundOptions, type Row } from '../rounds.ts'
import { startRunner } from '../start.ts'
import type { Before, InboxKind } from './inbox.ts'
import type { RowsKind } from './rows.ts'

const HANDLED = 1_000_000

/** A receiver with an inbox against the same receiver without. */
export async function compareInboxes(options: RoundOptions): Promise<void> {
  await compareReceivers('A SQLite inbox on node:http, 50 connections', options, (entry) => ({
    entries: { inline: entry('inline'), inbox: entry('accepting'), 'inbox and handlers': entry('working') },
    rows: [
      { of: 'inbox', to: 'inline', figure: figures.cpu, atMost: 1.5 },
      { of: 'inbox', to: 'inline', figure: figures.rate, atLeast: 0.7 },
      { of: 'inbox', to: 'inline', figure: figures.p99, atMost: 2 },
      { of: 'inbox and handlers', to: 'inline', figure: figures.cpu },
      { of: 'inbox and handlers', to: 'inline', figure: figures.rate },
      { of: 'inbox and handlers', to: 'inline', figure: figures.p99 },
    ],
  }))
}

/** An inbox that has handled so many messages and kept them, against one that has not kept them: both know their ids. */
export async function compareHistory(options: RoundOptions): Promise<void> {
  const title = 'A SQLite inbox that has handled 1 000 000 messages, with and without a history'
  await compareReceivers(title, options, (entry) => ({
    entries: {
      'no history': entry('working', { handled: HANDLED, areKept: false }),
      'a history': entry('working', { handled: HANDLED, areKept: true }),
    },
    rows: [{ of: 'a history', to: 'no history', figure: figures.cpu, atMost: 1.15 }],
    messages: 2500,
  }))
}

/** From `receive` to a row of PostgreSQL: one INSERT for a batch, against one for each message. And an inbox that only stores. */
export async function compareBatches(engines: readonly EngineName[], options: RoundOptions): Promise<void> {
  if (!(await isThere('pg-boss'))) return console.log('Batches are left out: no PostgreSQL answers.\n')
  await withPlaces(async (newPlace) => {
    const plans: Plan[] = []
    for (const engine of engines) {
      if (!(await isThere(engine))) continue
      const entry = (kind: RowsKind): Plan['entries'][string] => ({
        start: (checkout) =>
          startRunner(new URL('rows.ts', import.meta.url), [newPlace(engine, tmpdir(), true), kind], { checkout }),
        isOurs: true,
      })
      const title = titles[engine]
      const [each, batches, accepting] = [`${title}, a row each`, `${title}, batches`, `${title}, stored only`]
      plans.push({
        entries: {
          [each]: entry('one each'),
          [batches]: entry('batches'),
          [accepting]: entry('accepting'),
        },
        rows: [figures.rate, figures.perCpu].flatMap((figure): Row[] => [
          { of: batches, to: each, figure },
          { of: accepting, figure },
        ]),
        warmUp: 3_000,
      })
    }
    await compare('From `receive` to rows of PostgreSQL, 50 at a time', plans, options)
  })
}

type NewEntry = (kind: InboxKind, before?: Before) => Plan['entries'][string]

async function compareReceivers(title: string, options: RoundOptions, plan: (entry: NewEntry) => Plan): Promise<void> {
  await withPlaces((newPlace) => {
    const entry: NewEntry = (...setting) => ({
      start: (checkout) =>
        startServer(new URL('inbox.ts', import.meta.url), [newPlace('sqlite'), ...setting], { checkout }),
      isOurs: true,
    })
    return compare(title, [plan(entry)], options)
  })
}
