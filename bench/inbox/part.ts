/** What a SQLite inbox costs a receiver, and its history. No program is pinned but the load: an inbox syncs its file off the thread. */

import { startServer } from '../http/start.ts'
import { withPlaces } from '../queues/places.ts'
import { compare, figures, type Plan, type RoundOptions } from '../rounds.ts'
import type { Before, InboxKind } from './inbox.ts'

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
