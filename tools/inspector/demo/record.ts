/**
 * Writes the demo to a folder, as files for any static server. Run this file as a program, after a build. The demo is the page of the
 * inspector, with recorded answers to every request that the page sends without typed input.
 */

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { tellStory } from '../../../docs/story.ts'
import type { DeadLetters, HandledLine, Row, Setup, StreamEvents } from '../src/wire.ts'
import type { Recording } from './stand-in.ts'

const HOUR_MS = 3_600_000
/** The time spans that the plots of the page offer, in minutes. */
const MINUTES = [15, 240]
/** The time spans that the view "History" offers, in milliseconds. */
const SINCE = [1, 24, 72, 168].map((hours) => hours * HOUR_MS)
const HISTORY_PAGE = 100
const NOTE =
  '<aside class="banner" aria-label="About this page">You see a recording of two hours of an app. Nothing here is live. ' +
  'Start with its <a href="#/dead-letters">dead letters</a>. ' +
  '<a href="../inspector">About the inspector</a></aside>'
const STYLE = `body { display: flex; flex-direction: column }
#page { flex: 1; min-height: 0 }
`

const [, , folder] = process.argv
if (folder === undefined)
  throw new TypeError('The folder is required. Run `node tools/inspector/demo/record.ts FOLDER`.')
const { origin, crmOrigin, url, now } = await tellStory(0, 0)
const { hash, href } = new URL(url)
const page = href.replace(hash, '')
const headers = { 'x-hookline-inspector': hash.replace('#token=', '') }

const answers: Record<string, number> = {}
/** The recorded answers, each with its index. Many requests have the same answer, which is recorded only once. */
const texts = new Map<string, number>()
const stream = await readStream()
await recordAnswers()
await writeFiles()
process.exit() // Without this, the servers of the app would keep the process alive.

/** Reads the stream until it has the final counts of every queue. All rows arrive before these counts. */
async function readStream(): Promise<string> {
  const { body } = await ask('api/stream')
  let text = ''
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    const queues = eventsOf(text, 'queues').at(-1) ?? []
    if (queues.length > 0 && queues.every(({ asOf }) => asOf === now)) return text
  }
  throw new Error('The stream of the inspector ended before all queues were counted. Run the build again.')
}

function eventsOf<Name extends keyof StreamEvents>(text: string, name: Name): StreamEvents[Name][] {
  const events = text.split('\n\n').slice(0, -1)
  return events
    .filter((event) => event.startsWith(`event: ${name}\n`))
    .map((event) => JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? ''))
}

async function recordAnswers(): Promise<void> {
  const { parts }: Setup = JSON.parse(await record('setup'))
  await record('events')
  const rows = new Map<number, Row>()
  for (const each of eventsOf(stream, 'rows')) for (const row of each.rows) rows.set(row.id, row)
  for (const id of rows.keys()) {
    const { canExplain } = JSON.parse(await record('message', { id }))
    if (canExplain) await record('explanation', { id })
  }
  for (const { name: part, hasQueue, hasHistory } of parts) {
    if (hasQueue) {
      for (const minutes of MINUTES) await record('series', { part, minutes })
      const groups = await recordLetters({ part })
      for (const { name } of groups) await recordLetters({ part, group: name })
    }
    if (hasHistory)
      for (const ms of [undefined, ...SINCE]) await recordHistory(part, ms === undefined ? {} : { since: now - ms })
  }
}

async function recordLetters(query: Readonly<Record<string, string>>): Promise<DeadLetters['groups']> {
  const { groups, next }: DeadLetters = JSON.parse(await record('dead-letters', query))
  if (next !== undefined) await recordLetters({ ...query, after: next })
  return groups
}

async function recordHistory(part: string, query: Readonly<Record<string, string | number>>): Promise<void> {
  const lines: HandledLine[] = (await record('history', { part, ...query }))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
  const after = lines.at(-1)?.cursor
  if (lines.length === HISTORY_PAGE && after !== undefined) await recordHistory(part, { ...query, after })
}

/** Requests an answer and records it. The parameters must have the same order as in requests from the page. */
async function record(path: string, query: Readonly<Record<string, string | number>> = {}): Promise<string> {
  const search = new URLSearchParams(Object.entries(query).map(([name, value]): [string, string] => [name, `${value}`]))
  const key = search.size === 0 ? path : `${path}?${search}`
  const text = await (await ask(`api/${key}`)).text()
  texts.set(text, texts.get(text) ?? texts.size)
  answers[key] = texts.get(text) as number
  return text
}

async function ask(path: string): Promise<Response> {
  const response = await fetch(new URL(path, page), { headers })
  if (!response.ok) throw new Error(`${path} must be answered 200. Got ${response.status}. ${await response.text()}`)
  return response
}

async function textOf(response: Response | undefined): Promise<string> {
  return (await response?.text()) ?? ''
}

/**
 * Writes the demo. Adds two elements to the page: the content security policy from the headers, and the stand-in, which runs before the
 * script of the page.
 */
async function writeFiles(): Promise<void> {
  const [html, script, style] = await Promise.all(['', 'page.js', 'page.css'].map(ask))
  const policy = html?.headers.get('content-security-policy')?.replace(/; frame-ancestors .*/, '') // A meta element cannot set `frame-ancestors`.
  const head = `<meta http-equiv="content-security-policy" content="${policy}">
<link rel="stylesheet" href="demo.css">
<script src="demo.js"></script>`
  const index = (await textOf(html)).replace('<title>', `${head}\n<title>`).replace('<body>', `<body>\n${NOTE}`)
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'stand-in.ts')],
    bundle: true,
    minify: true,
    write: false,
  })
  const recording = JSON.stringify({ answers, texts: [...texts.keys()], stream } satisfies Recording)
  const files = {
    'index.html': index,
    'page.js': await textOf(script),
    'page.css': await textOf(style),
    'demo.js': outputFiles[0]?.text ?? '',
    'demo.css': STYLE,
    'recording.json': recording
      .replaceAll(pathToFileURL('.').href, 'file:///app') // Stack traces of errors contain this path.
      .replaceAll(new URL(origin).host, '127.0.0.1:3000')
      .replaceAll(new URL(crmOrigin).host, '127.0.0.1:4000'),
  }
  await mkdir(folder as string, { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder as string, name), text)
}
