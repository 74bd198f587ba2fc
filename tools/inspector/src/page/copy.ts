/** Converts a message to a command or a test to paste. Untrusted text is quoted in both, so that this text is never executed. */

import type { Body, Detail, RequestLine } from '../wire.ts'
import { UNSEEN } from './codes.ts'

/** The maximum size of a body in an argument, in bytes. Linux accepts arguments of up to 128 KB. */
const ARGUMENT_BYTES = 100_000
/** The headers to omit: curl sets them itself, or they belong to one connection. */
const OWN_HEADERS = [
  'host',
  'content-length',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'expect',
  'te',
  'upgrade',
]

/** Returns the message as a curl command for a POSIX shell, without hidden headers; undefined if no body was kept. */
export function copyAsCurl({ request, body, steps }: Pick<Detail, 'request' | 'body' | 'steps'>): string | undefined {
  const bytes = bytesOf(body)
  if (bytes === undefined) return undefined
  const urls = steps.flatMap((step) => (step.what === 'attempt' ? [step.attempt.url.replace(/\?.*/s, '')] : []))
  const url = request === undefined ? (urls.at(-1) ?? 'http://localhost:3000/webhooks') : urlOf(request)
  const headers = request === undefined ? [['content-type', 'application/json'] as const] : headersOf(request)
  const words = [
    `curl --globoff --path-as-is -X ${quoteForShell(request?.method ?? 'POST')} ${quoteForShell(url)}`,
    ...headers.map(([name, value]) => `-H ${quoteForShell(value === '' ? `${name};` : `${name}: ${value}`)}`),
  ]
  // An empty header keeps curl from adding a content type.
  if (!headers.some(([name]) => name === 'content-type')) words.push("-H 'content-type:'")
  const isPlain = body.text !== undefined && isTypable(body.text)
  if (isPlain && bytes.length <= ARGUMENT_BYTES) {
    return [...words, `--data-raw ${quoteForShell(body.text)}`].join(' \\\n  ')
  }
  const print = isPlain ? `printf %s ${quoteForShell(body.text)}` : `printf '${[...bytes].map(octalOf).join('')}'`
  return `${print} |\n  ${[...words, '--data-binary @-'].join(' \\\n  ')}`
}

/** Returns the message as a test of a receiver, for Node.js; undefined if the body is not UTF-8, or was not kept. */
export function copyAsTest({ row, body, isStored }: Pick<Detail, 'row' | 'body' | 'isStored'>): string | undefined {
  if (body.text === undefined) return undefined
  const name = [row.type ?? 'message', row.name].filter((word) => word !== undefined).join(' ')
  if (isStored) return testOfInbox(name, body.text)
  return `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signedRequest } from 'hookline/testing'
import { receiver, secret } from './receiver.js'

const message = ${literalOf(body.text)}

test(${quoteForScript(`receives ${name}`)}, async () => {
  const { bytes, headers } = signedRequest(message, secret)
  const { status } = await receiver.receive(bytes, headers)
  assert.equal(status, 200)
})
`
}

/** Returns a test that waits for the handler, which runs after the answer. The test sends a message id that is new to the inbox. */
function testOfInbox(name: string, text: string): string {
  return `import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { signedRequest } from 'hookline/testing'
import { receiver, secret } from './receiver.js' // The receiver must have started its inbox.

const message = { ...JSON.parse(${quoteForScript(text)}), messageId: randomUUID() }

after(() => receiver.close({ graceMs: 0 }))

test(${quoteForScript(`handles ${name}`)}, async () => {
  const handled = new Promise((resolve, reject) => {
    receiver.observe({ handled: resolve, ignored: resolve, failed: ({ error }) => reject(error.cause ?? error) })
  })
  const { bytes, headers } = signedRequest(message, secret)
  assert.equal((await receiver.receive(bytes, headers)).status, 200)
  await handled
})
`
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Quotes a text for JavaScript. Escapes characters that are invisible. */
export function quoteForScript(text: string): string {
  return `'${escapeUnseen(JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'"))}'`
}

/** Returns a JavaScript expression for the text: JSON.stringify of an object if the result is the same text, otherwise a string. */
function literalOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    const isSame = typeof value === 'object' && value !== null && JSON.stringify(value) === text
    // In a script, the key `__proto__` would set the prototype of the object.
    if (isSame && !hasPrototype(value)) return `JSON.stringify(${escapeUnseen(JSON.stringify(value, null, 2))})`
  } catch {
    // The text is not JSON.
  }
  return quoteForScript(text)
}

function hasPrototype(value: object): boolean {
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const each = pending.pop()
    if (typeof each !== 'object' || each === null) continue
    if (Object.hasOwn(each, '__proto__')) return true
    for (const child of Object.values(each)) pending.push(child)
  }
  return false
}

function escapeUnseen(text: string): string {
  return text.replace(UNSEEN, (found) => {
    if (found === '\n') return found
    const units = Array.from({ length: found.length }, (_, index) => found.charCodeAt(index))
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })
}

/** Returns the exact bytes of a body; undefined when no body was kept. */
export function bytesOf({ text, base64 }: Body): Uint8Array | undefined {
  if (text !== undefined) return new TextEncoder().encode(text)
  return base64 === undefined ? undefined : Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}

/** Returns whether a terminal only shows the pasted text, and acts on no character in it. */
function isTypable(text: string): boolean {
  return ![...text.matchAll(/\p{Cc}/gu)].some(([found]) => found !== '\n')
}

/** Returns a byte for printf, as an octal escape if needed. A hyphen is escaped too, because printf could take it for an option. */
function octalOf(byte: number): string {
  const character = String.fromCharCode(byte)
  return /[\w{}":,. ]/.test(character) && byte < 0x80 ? character : `\\${byte.toString(8).padStart(3, '0')}`
}

function headersOf({ headers }: RequestLine): (readonly [string, string])[] {
  return headers.flatMap(([name, value]) => {
    const isToken = /^[\w!#$%&'*+.^`|~-]+$/.test(name)
    if (value === null || !isToken || OWN_HEADERS.includes(name) || !isTypable(value) || value.includes('\n')) return []
    return [[name, value] as const]
  })
}

function urlOf({ path, headers }: RequestLine): string {
  const host = headers.find(([name]) => name === 'host')?.[1] ?? ''
  const isHost = /^[\w.-]+(:\d+)?$|^\[[\da-f:]+\](:\d+)?$/i.test(host)
  const isLocal = /^(localhost|127\.|\[::1\])/i.test(host)
  return `${isLocal || !isHost ? 'http' : 'https'}://${isHost ? host : 'localhost:3000'}${path}`
}
