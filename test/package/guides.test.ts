/** The guides, followed word for word with the packed tarball. */

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { FOLLOWED } from '../docs/blocks.ts'
import { follow } from '../docs/follow.ts'
import { needs } from '../support/needs.ts'
import { pack } from './project.ts'

let folder: string
let tarball: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hookline-packed-'))
  tarball = join(folder, (await pack(folder)).filename)
})

afterAll(() => rm(folder, { recursive: true }))

const tools = needs('bash', 'curl', 'openssl')

describe('a reader follows', { timeout: 240_000 }, () => {
  test.each(FOLLOWED)('%s', tools, async (guide) => {
    await follow(guide, await readFile(new URL(`../../${guide}`, import.meta.url), 'utf8'), tarball)
  })
})

/** Each `~` is a backtick. */
const GUIDE = `
Save this as ~app.mjs~, and start it with ~NAME=one node app.mjs~:

~~~js
import { createServer } from 'node:http'

createServer((_request, response) => response.end(process.env.NAME)).listen(3000)
console.log('started', process.version)
~~~

In another terminal, run ~export URL=http://localhost:3000~. The answer is ~one~:

~~~sh
curl -sS "$URL"
~~~

~~~text
started v…
~~~

Change it, and start it again with ~NAME=one node app.mjs~:

~~~diff [app.mjs]
-createServer((_request, response) => response.end(process.env.NAME)).listen(3000)
+createServer((_request, response) => response.end('not ' + process.env.NAME)).listen(3000)
 console.log('started', process.version)
~~~

~~~sh
curl -sS "$URL"
exit 3
~~~

It ends with exit code 3, and the answer is ~not one~.
`

describe.concurrent('a reader', () => {
  test.for([
    ['follows a guide that is right', '', '', undefined],
    ['sees that code is wrong', 'createServer((', 'createServer(((', /^a.md:4: .*node app.mjs\n.*SyntaxError/s],
    [
      'sees that a file has another name',
      '~app.mjs~',
      '~server.mjs~',
      /^a.md:4: ended with 1, not 0: .*Cannot find module/s,
    ],
    ['sees that a command is wrong', 'curl -sS', 'curl --wrong', /^a.md:13: ended with 2, not 0: curl/],
    [
      'sees that another terminal lacks a variable',
      'run ~export',
      'note ~export',
      /^a.md:13: ended with \d+, not 0: curl/,
    ],
    ['sees another answer', '~one~', '~two~', /^a.md:13: the guide shows\ntwo\nand this was printed:\none\n/],
    ['sees another output', 'started v…', 'stopped v…', /^a.md:17: the guide shows\nstopped v…\n/],
    ['sees that a diff is of another file', '-createServer(', '-createServers(', /^a.md:23: the diff fits 0 places/],
    [
      'sees that a server is not started again',
      ', and start it again with ~NAME',
      '; the command was ~NAME',
      /^a.md:29: the guide shows\nnot one\n/,
    ],
    ['sees another exit code', 'exit code 3', 'exit code 4', /^a.md:29: ended with 3, not 4/],
  ] as const)('%s', { ...tools, timeout: 60_000 }, async ([, right, wrong, fault], { expect }) => {
    expect(GUIDE).toContain(right)
    const followed = follow('a.md', GUIDE.replace(right, wrong).replaceAll('~', '`'), tarball)
    await (fault === undefined ? followed : expect(followed).rejects.toThrow(fault))
  })
})
