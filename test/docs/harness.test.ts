/** The test of the code blocks can fail: blocks that are wrong in every way it looks for. */

import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { type Block, extractBlocks, fileName, kindOf } from './blocks.ts'
import { createHarness } from './harness.ts'

const RECEIVER = `
import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'

const receiver = createReceiver({ secret: process.env.SHARED_SECRET })
`

const ORDERS = readFileSync(new URL('../../examples/testing/orders.ts', import.meta.url), 'utf8')

let count = 0

const cases: readonly (readonly [string, Block, RegExp | undefined])[] = [
  ['a good server', ts(`${RECEIVER}createServer(serve(receiver)).listen(3000)`), undefined],
  [
    'a function that verifies nothing',
    ts('export const handler = async () => ({ statusCode: 200 })'),
    /wrong statuses/,
  ],
  [
    'a wrong type',
    ts("import { createReceiver } from 'hookline'\ncreateReceiver({ secret: 1 })"),
    /line 2: Type 'number'/,
  ],
  ['a name that is not exported', ts("import { nothing } from 'hookline'\nnothing()"), /no exported member 'nothing'/],
  ['a package that is not there', ts("import 'hookline/nothing'\nexport const POST = 1"), /Cannot find module/],
  ['an unused import', ts("import { sign } from 'hookline'"), /'sign' is declared but/],
  [
    'JavaScript with a wrong type',
    block('js', "import { sign } from 'hookline'\nsign(1, 2)"),
    /Argument of type 'number'/,
  ],
  ['a throw', ts("throw new Error('broken')"), /Error: broken/],
  ['a rejection that nobody handles', ts("Promise.reject(new Error('left alone'))"), /Error: left alone/],
  [
    'a server that verifies nothing',
    ts(`${RECEIVER}void serve, receiver
createServer((_request, response) => void response.end()).listen(3000)`),
    /wrong statuses/,
  ],
  [
    'a server that refuses all',
    ts(`${RECEIVER}void receiver
createServer(serve(createReceiver({ secret: 'another' }))).listen(3000)`),
    /wrong statuses/,
  ],
  [
    'a server that nobody starts',
    ts(`${RECEIVER}export const start = () => createServer(serve(receiver)).listen(3000)`),
    /nobody tried listen/,
  ],
  ['a test that fails', ts("import { expect, test } from 'vitest'\ntest('one', () => expect(1).toBe(2))"), /"failed"/],
  ['a test that passes', ts("import { expect, test } from 'vitest'\ntest('one', () => expect(1).toBe(1))"), undefined],
  [
    'a test of node:test that fails',
    ts("import { test } from 'node:test'\ntest('one', () => { throw new Error('broken') })"),
    /ended with 1/,
  ],
  ['a test of node:test that passes', ts("import { test } from 'node:test'\ntest('one', () => {})"), undefined],
  ['an example', example(ORDERS), undefined],
  ['an example that is not its file', example(`${ORDERS}\n`), /it is not examples\/testing\/orders.ts/],
  ['JSON with a comma too many', block('json', '{ "a": 1, }'), /JSON/],
  ['a compiler option that does not exist', block('json', '{ "compilerOptions": { "module": "es1999" } }'), /module/],
  ['a good compiler option', block('json', '{ "compilerOptions": { "module": "nodenext" } }'), undefined],
  ['a script that does not exist', block('sh', 'npm run nothing'), /there is no such script/],
  ['a script that exists', block('sh', 'npm run build'), undefined],
  ['a package of somebody else', block('sh', 'npm install hookline left-pad'), /left-pad is no package of ours/],
  ['a file that does not exist', block('sh', 'npm exec -- node examples/nothing.ts'), /a file that exists/],
  ['a command nobody knows', block('sh', 'rm -r docs'), /'rm'/],
  ['a quote that is not closed', block('sh', "npm run 'build"), /sh:/],
  [
    'a curl without a signature',
    block('sh', "curl http://127.0.0.1:3000/webhooks -H 'content-type: application/json' --data-raw '{}'"),
    /x-signature/,
  ],
  [
    'a curl that is forged',
    block('sh', `curl http://127.0.0.1:3000/webhooks -H 'x-signature: ${'0'.repeat(40)}' --data-raw '{}'`),
    /x-signature/,
  ],
]

const harness = createHarness(cases.map(([, each]) => each))

afterAll(() => harness.close())

for (const [name, each, fault] of cases) {
  test.concurrent(`${name} ${fault === undefined ? 'passes' : 'fails'}`, { timeout: 120_000 }, async () => {
    if (fault === undefined) await harness.check(each)
    else await expect(harness.check(each)).rejects.toThrow(fault)
  })
}

test('a block in a language nobody tests is an error', () => {
  expect(() => kindOf(block('python', 'pass'))).toThrow("no test knows blocks in 'python'")
  expect(() => kindOf(block('', 'pass'))).toThrow("no test knows blocks in ''")
})

test('a block that runs the command is for test/cli', () => {
  expect(kindOf(block('sh', 'npx hookline --help'))).toBe('command')
})

test('blocks are found wherever they stand', () => {
  const markdown = 'a\n```ts\none\n```\n\n- item\n\n  ```json\n  {}\n  ```\n\n````sh\n```\n````\n'

  expect(extractBlocks('a.md', markdown)).toEqual([
    { place: 'a.md:2', language: 'ts', code: 'one\n' },
    { place: 'a.md:8', language: 'json', code: '{}\n' },
    { place: 'a.md:12', language: 'sh', code: '```\n' },
  ])
})

test('a block may have the name of its file, for other blocks to import', () => {
  const [named] = extractBlocks('a.md', '```ts [queue.ts]\none\n```\n')
  expect(named).toEqual({ place: 'a.md:1', language: 'ts', file: 'queue.ts', code: 'one\n' })
  expect(fileName(named as Block)).toBe('queue.ts')
})

test('a block that is not closed is an error', () => {
  expect(() => extractBlocks('a.md', '```ts\none\n')).toThrow('a.md:1: this block is not closed')
})

test('blocks become files that are not one another', () => {
  const names = ['docs/a.md:1', 'docs/a.md:11', 'README.md:1'].map((place) =>
    fileName({ place, language: 'ts', code: '' }),
  )

  expect(new Set(names).size).toBe(3)
})

function ts(code: string): Block {
  return block('ts', code)
}

function example(code: string): Block {
  return { place: 'bad.md:example', language: 'ts', file: 'examples/testing/orders.ts', code }
}

function block(language: string, code: string): Block {
  count++
  return { place: `bad.md:${count}`, language, code: `${code}\n` }
}
