/** A body as people read it. Nothing in it can control a terminal. */

import { readJsonText, twoSpaces, writeJson } from '../message/explain/json-text.ts'
import { escaped } from './terminal.ts'

/** A longer text is shown as it came: the indentation of what is nested deep makes it hundreds of times as long. */
const MOST_GROWTH = 20

/** JSON on many lines, each number and string as it is written; anything else as text. */
export function prettyOf(body: Uint8Array): string {
  const text = Buffer.from(body).toString()
  const json = readJsonText(text)
  const most = MOST_GROWTH * text.length + 1_000
  const written = json && writeJson(json.root, json.tokens, twoSpaces, most)
  return escapedLines(written ?? text)
}

/** Lines of strangers: each is escaped, and the line breaks between them stay. */
export function escapedLines(text: string): string {
  return text.split(/\r?\n/).map(escaped).join('\n')
}
