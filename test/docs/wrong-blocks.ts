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
  ['a folder that is not exported', ts("import 'hookline/message'\nexport const POST = 1"), /Cannot find module/],
  ['an unused import', ts("import { sign } from 'hookline'"), /'sign' is declared but/],
  [
    'JavaScript with a wrong type',
    block('js', "import { sign } from 'hookline'\nsign(1, 2)"),
    /Argument of type 'number'/,
  ],
  ['a throw', ts("throw new Error('broken')"), /Error: broken/],
  ['a rejection that is not handled', ts("Promise.reject(new Error('left alone'))"), /Error: left alone/],
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
    'a server that does not start',
    ts(`${RECEIVER}export const start = () => createServer(serve(receiver)).listen(3000)`),
    /nothing called listen/,
  ],
  ['a test that fails', ts("import { expect, test } from 'vitest'\ntest('one', () => expect(1).toBe(2))"), /"failed"/],
  ['a test that passes', ts("import { expect, test } from 'vitest'\ntest('one', () => expect(1).toBe(1))"), undefined],
  [
    'a test of node:test that fails',
    ts("import { test } from 'node:test'\ntest('one', () => { throw new Error('broken') })"),
    /ended with 1/,
  ],
  ['an example', example(ORDERS), undefined],
  ['an example that is not its file', example(`${ORDERS}\n`), /it is not examples\/testing\/orders.ts/],
  ['JSON with a comma too many', block('json', '{ "a": 1, }'), /JSON/],
  ['a compiler option that does not exist', block('json', '{ "compilerOptions": { "module": "es1999" } }'), /module/],
  ['a good compiler option', block('json', '{ "compilerOptions": { "module": "nodenext" } }'), undefined],
  ['a script that does not exist', block('sh', 'npm run nothing'), /there is no such script/],
  ['a script that exists', block('sh', 'npm run build'), undefined],
  ['a package of others', block('sh', 'npm install hookline left-pad'), /left-pad is no package of ours/],
  ['a file that does not exist', block('sh', 'npm exec -- node examples/nothing.ts'), /a file that exists/],
  ['an unknown command', block('sh', 'mv -f docs'), /'mv'/],
  ['a quote that is not closed', block('sh', "npm run 'build"), /sh:/],
  ['a subcommand that no test knows', block('sh', 'docker rmi receiver'), /no test knows this/],
  [
    'a file that no block shows',
    block('sh', 'kubectl apply --filename nothing.yaml'),
    /no block is the file nothing.yaml/,
  ],
  ['a configuration without a name', block('toml', 'app = "receiver"'), /has the name of its file/],
  ['an instruction that does not exist', block('dockerfile', 'FROM node\nCOPPY a b', 'Dockerfile'), /COPPY/],
  ['YAML that does not parse', block('yaml', 'services: [', 'a.yaml'), /Flow sequence/],
  ['YAML of no known form', block('yaml', 'a: 1', 'a.yaml'), /no test knows this form/],
  [
    'a key that Compose does not know',
    block('yaml', 'services: { a: { imagee: b } }', 'a.yaml'),
    /additional properties/,
  ],
  [
    'a field that Kubernetes does not know',
    block('yaml', 'apiVersion: v1\nkind: Service\nspec: { ports: [{ port: 80, targetPrt: http }] }', 'a.yaml'),
    /targetPrt/,
  ],
  [
    'a field of Kubernetes of a wrong type',
    block('yaml', 'apiVersion: apps/v1\nkind: Deployment\nspec: 1', 'a.yaml'),
    /not assignable to type 'IDeploymentSpec'/,
  ],
  ['a Blueprint without a disk', block('yaml', 'services: [{ type: web }]', 'a.yaml'), /no disk/],
  ['TOML that does not parse', block('toml', 'app = ', 'fly.toml'), /TOML/],
  ['an app of Fly.io without a mount', block('toml', 'app = "receiver"', 'fly.toml'), /no mounts/],
  [
    'a unit with a key that does not exist',
    block('ini', '[Service]\nExecStart=/usr/bin/node a.mjs\nRestartt=always', 'wrong.service'),
    /Restartt/,
  ],
  ['a unit that is not hardened', block('ini', '[Service]\nExecStart=/usr/bin/node a.mjs', 'wrong.service'), /UNSAFE/],
  ['a directive that nginx does not know', block('nginx', 'server { lissten 80; }', 'wrong.conf'), /lissten/],
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
