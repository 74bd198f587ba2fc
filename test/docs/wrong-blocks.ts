/** Blocks that are wrong in every way that the test of blocks looks for, and a few that are right. */

import { readFileSync } from 'node:fs'
import type { Block } from './blocks.ts'

const RECEIVER = `
import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })
`

const ORDERS = readFileSync(new URL('../../examples/testing/orders.ts', import.meta.url), 'utf8')

let count = 0

export const wrong: readonly (readonly [string, Block, RegExp | undefined])[] = [
  ['a good server', ts(`${RECEIVER}createServer(serve(receiver)).listen(3000)`), undefined],
  [
    'a server that verifies nothing',
    ts(`${RECEIVER}void serve, receiver
createServer((_request, response) => void response.end()).listen(3000)`),
    /wrong statuses/,
  ],
  [
    'a function that verifies nothing',
    ts('export const handler = async () => ({ statusCode: 200 })'),
    /wrong statuses/,
  ],
  [
    'a server that does not start',
    ts(`${RECEIVER}export const start = () => createServer(serve(receiver)).listen(3000)`),
    /nothing called listen/,
  ],
  ['a wrong type', ts("import { createReceiver } from 'hookline'\ncreateReceiver({ secret: 1 })"), /Type 'number'/],
  ['a folder that is not exported', ts("import 'hookline/message'\nexport const POST = 1"), /Cannot find module/],
  ['JavaScript with a wrong type', block('js', "import { sign } from 'hookline'\nsign(1, 2)"), /type 'number'/],
  ['a rejection that is not handled', ts("Promise.reject(new Error('left alone'))"), /Error: left alone/],
  [
    'a test that fails',
    ts("import { expect, test } from 'vitest'\ntest('one', () => expect(1).toBe(2))"),
    /AssertionError/,
  ],
  ['a test that passes', ts("import { expect, test } from 'vitest'\ntest('one', () => expect(1).toBe(1))"), undefined],
  [
    'a test of node:test that fails',
    ts("import { test } from 'node:test'\ntest('one', () => { throw new Error('broken') })"),
    /ended with 1/,
  ],
  ['an example that is not its file', example(`${ORDERS}\n`), /it is not examples\/testing\/orders.ts/],
  ['JSON with a comma too many', block('json', '{ "a": 1, }'), /JSON/],
  ['a compiler option that does not exist', block('json', '{ "compilerOptions": { "module": "es1999" } }'), /module/],
  ['a script that does not exist', block('sh', 'npm run nothing'), /there is no such script/],
  ['a package of others', block('sh', 'npm install hookline left-pad'), /left-pad/],
  ['an unknown command', block('sh', 'mv -f docs'), /'mv'/],
  ['a file that no block shows', block('sh', 'kubectl apply --filename nothing.yaml'), /nothing.yaml/],
  [
    'a curl that is forged',
    block('sh', `curl http://127.0.0.1:3000/webhooks -H 'x-signature: ${'0'.repeat(40)}' --data-raw '{}'`),
    /x-signature/,
  ],
]

function ts(code: string): Block {
  return block('ts', code)
}

function example(code: string): Block {
  return { place: 'wrong.md:example', language: 'ts', file: 'examples/testing/orders.ts', code }
}

function block(language: string, code: string, file?: string): Block {
  count += 1
  return { place: `wrong.md:${count}`, language, ...(file !== undefined && { file }), code: `${code}\n` }
}
