/** The texts that docs/troubleshooting.md shows, each beside what the product says when its symptom is caused. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import express from 'express'
import ts from 'typescript'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { serve } from '../../adapters/express.ts'
import { STATUS } from '../../src/protocol/error-codes.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { cannotUse } from '../../src/store/sqlite/advice.ts'
import { capture } from '../../src/testing/capture.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { createInspector } from '../../tools/inspector/src/index.ts'
import { watchConsole } from '../support/console.ts'
import { deliver, hostRequest, secret, watchWarnings } from '../support/receive.ts'
import { warningCodes } from './names.ts'

const page = read('docs/troubleshooting.md')
const { track } = fixtures
const FLOAT = '{"type":"track","userId":"user-1","event":"Order Completed","properties":{"total":39.0}}'

/** What is said when the symptom of a heading is caused: lines of the log, warnings, answers and messages of the compiler. */
const symptoms: Readonly<Record<string, () => unknown>> = {
  async 'Every request is 401'() {
    createReceiver({ secret: 'from a file\n' })
    const receiver = createReceiver({ secret })
    await deliver(receiver, track, 'another secret')
    await receiver.receive(signedRequest(track, secret).bytes, {})
  },
  async 'Some requests are 401'() {
    const receiver = createReceiver({ secret })
    receiver.on('*', () => {})
    for (const [body, status] of [
      ['{"type":"track","userId":"user-1","event":"Order Completed"}', 200],
      [FLOAT, 401],
    ] as const) {
      const { headers } = signedRequest(body, secret)
      const written = Buffer.from(JSON.stringify(JSON.parse(body)))
      expect(await receiver.receive(written, headers)).toMatchObject({ status })
    }
  },
  async '500 `body_consumed`'() {
    const app = express()
    app.use(express.json())
    app.post('/webhooks', serve(createReceiver({ secret })))
    return post(app, signedRequest(FLOAT, secret))
  },
  async '413'() {
    const large = signedRequest({ ...track, properties: { text: 'x'.repeat(600_000) } }, secret)
    const app = express()
    app.post('/webhooks', serve(createReceiver({ secret })))
    app.post('/parsed', express.json(), serve(createReceiver({ secret })))
    return [await post(app, large), await post(app, large, '/parsed')]
  },
  async '415'() {
    const app = express()
    app.post('/webhooks', serve(createReceiver({ secret })))
    const { headers, body } = signedRequest(track, secret)
    const answers = []
    for (const changed of [{ 'content-type': 'text/plain' }, { 'content-encoding': 'gzip' }])
      answers.push(await post(app, { headers: { ...headers, ...changed }, body }))
    return answers
  },
  async '503 `handler_timeout`, or the sender says timeout'() {
    const clock = manualClock()
    const receiver = createReceiver({ secret, clock })
    receiver.on('track', () => new Promise(() => {}))
    const received = deliver(receiver, track)
    await clock.advance(5_000)
    expect(await received).toMatchObject({ status: 503 })
  },
  async '503 `inbox_unavailable`'() {
    const receiver = createReceiver({ secret, clock: manualClock(), inbox: memoryQueue({ maxJobs: 1 }) })
    await deliver(receiver, track)
    expect(await deliver(receiver, fixtures.page)).toMatchObject({ status: 503 })
  },
  async 'It works on your machine, and not behind the proxy'() {
    const inspector = createInspector({ receiver: createReceiver({ secret }) })
    onTestFinished(() => inspector.close())
    const url = await inspector.listen({ port: 0 })
    const answer = await fetch(url, { headers: { 'x-forwarded-for': '192.0.2.1' } })
    return answer.text()
  },
  async '200, but no handler runs'() {
    await createReceiver({ secret }).handle(hostRequest())
    const misspelt = createReceiver({ secret })
    misspelt.on('track', 'Order Complete', () => {})
    await deliver(misspelt, track)

    const clock = manualClock()
    const stored = createReceiver({ secret, clock, inbox: memoryQueue({ clock }) })
    stored.on('track', () => {})
    await deliver(stored, track)
    await clock.advance(10_000)
  },
  async 'A message arrives twice'() {
    const receiver = createReceiver({ secret, clock: manualClock(), inbox: memoryQueue() })
    const answers = [await deliver(receiver, track), await deliver(receiver, track)]
    return answers.map(({ body }) => body)
  },
  async 'Messages stay in the queue'() {
    await handle([1_000])
  },
  async 'Dead letters grow'() {
    await handle([])
  },
  async 'A destination holds messages'() {
    const clock = manualClock()
    const { dispatcher } = capture({ script: [() => 503] })
    const webhooks = [{ url: 'https://shop.example/webhooks' }]
    const destination = createDestination({ webhooks, dispatcher, clock })
    for (let sent = 0; sent < 20; sent++) await destination.track({ userId: 'user-1', event: 'Order Completed' })
    await clock.advance(60_000)
    await destination.close({ graceMs: 0 })
  },
  async 'A URL does not get messages that another one gets'() {
    const { dispatcher } = capture({ script: [({ url }) => (url.includes('down') ? 500 : 200)] })
    const webhooks = [{ url: 'https://up.example/webhooks' }, { url: 'https://down.example/webhooks' }]
    const destination = createDestination({ webhooks, dispatcher })
    await destination.track({ userId: 'user-1', event: 'Order Completed' })
    await destination.close()
  },
  async 'A SQLite file is refused'() {
    const folder = mkdtempSync(join(tmpdir(), 'hookline-docs-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'inbox.sqlite')
    const refused = (): string => {
      try {
        sqliteQueue({ path, name: 'inbox' })
      } catch (error) {
        return String((error as Error).message)
      }
      throw new Error('It was opened.')
    }
    writeFileSync(path, 'not a database, but long enough to be read as one\n'.repeat(100))
    const texts = [refused()]
    rmSync(path)
    const other = new DatabaseSync(path)
    onTestFinished(() => other.close())
    other.exec('CREATE TABLE hookline_queue_schema (version); INSERT INTO hookline_queue_schema VALUES (6)')
    texts.push(refused())

    other.exec('BEGIN EXCLUSIVE')
    const waiting = new DatabaseSync(path, { timeout: 0 })
    onTestFinished(() => waiting.close())
    try {
      waiting.exec('BEGIN IMMEDIATE')
    } catch (error) {
      texts.push(cannotUse('Queue inbox', path, error)) // Without the five seconds that opening waits.
    }
    return texts
  },
  async 'The process does not end'() {
    const server = createServer().listen(0)
    onTestFinished(() => void server.close())
    return process.getActiveResourcesInfo()
  },
  'TypeScript says `unknown`'() {
    const code = `
      import { createReceiver } from '../../src/index.ts'
      createReceiver({ secret: 's' }).on('track', ({ properties }) => properties?.total.toFixed(2))
    `
    return compile('program.mts', code, ts.ModuleKind.NodeNext)
  },
  'ES module errors'() {
    return compile('program.cts', "import { sign } from '../../src/index.ts'\nsign('', '')", ts.ModuleKind.Node16)
  },
}

const sections = [...page.matchAll(/^### (.+)\n((?:(?!#).*\n)*)/gm)].map(([, heading = '', text = '']) => ({
  heading,
  quotes: [...text.matchAll(/(?:^>.*\n)+/gm)].flatMap(([block]) => block.replace(/^> ?/gm, '').trim().split('\n\n')),
}))

describe('what is shown is what is said:', () => {
  it.each(sections)('$heading', { timeout: 120_000 }, async ({ heading, quotes }) => {
    // One compiles.
    const said = await cause(heading)
    expect(quotes.length).toBeGreaterThan(0)
    for (const quote of quotes) expect(said).toMatch(patternOf(quote))
  })

  it('each symptom that is caused has a heading', () => {
    expect(sections.map(({ heading }) => heading).sort()).toEqual(Object.keys(symptoms).sort())
  })
})

describe('whatever the log says leads somewhere:', () => {
  it('each code of an error is on this page, or in a table that it links to', () => {
    const tables = ['errors.md#the-codes-of-a-receiver', 'collector.md#errors']
    for (const link of tables) expect(page).toContain(`](${link})`)
    const text = [page, ...tables.map((link) => read(`docs/${link.split('#')[0]}`))].join('\n')
    expect(Object.keys(STATUS).filter((code) => !text.includes(`\`${code}\``))).toEqual([])
  })

  it('each warning of the process has a row', () => {
    const rows = [...page.matchAll(/^\| (`HOOKLINE_.+?`) \|/gm)].flatMap(([, codes = '']) => codes.match(/\w+/g))
    expect(rows.sort()).toEqual(warningCodes())
  })
})

/** Causes a symptom, and returns all that was said, one text a line. */
async function cause(heading: string): Promise<string> {
  const printed = watchConsole()
  const warnings = watchWarnings()
  const debug = vi.spyOn(console, 'info').mockReturnValue()
  onTestFinished(() => debug.mockRestore())
  const returned = await symptoms[heading]?.()
  const warned = warnings.mock.calls.map(([text, options]) => `${(options as { code: string }).code}: ${text}`)
  return [...printed.map(({ text }) => text), ...warned, ...[returned].flat(2)].join('\n')
}

/** A message whose handler fails, in an inbox. */
async function handle(retries: readonly number[]): Promise<void> {
  const clock = manualClock()
  const receiver = createReceiver({ secret, clock, inbox: { queue: memoryQueue({ clock }), retries } })
  receiver.on('track', () => {
    throw new TypeError('no order')
  })
  receiver.start()
  await deliver(receiver, track)
  await clock.advance(10)
}

async function post(
  app: RequestListener,
  { headers, body }: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
  path = '/webhooks',
): Promise<string> {
  const server = createServer(app).listen(0)
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body })
  return `${answer.status} ${await answer.text()}`
}

/** Compiles a file of this folder as a user does, and returns what the compiler says of it. */
function compile(name: string, code: string, module: ts.ModuleKind): string[] {
  const path = fileURLToPath(new URL(name, import.meta.url))
  const options = {
    module,
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ['node'],
  }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = (file) => file === path || fileExists(file)
  host.getSourceFile = (file, target, ...rest) =>
    file === path ? ts.createSourceFile(file, code, target, true) : getSourceFile(file, target, ...rest)
  const program = ts.createProgram([path], options, host)
  return program
    .getSemanticDiagnostics(program.getSourceFile(path))
    .map(({ code, messageText }) => `error TS${code}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
}

/** `…` stands for what differs from case to case. */
function patternOf(quote: string): RegExp {
  return new RegExp(
    quote
      .replaceAll('\n', ' ')
      .split('…')
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*?'),
  )
}

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}
