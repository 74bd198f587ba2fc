/** What an engine has stored of messages, looked at where it stores it: encrypted, and plain to see that the look finds it. */

import { randomBytes, randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { inspectQueue } from '../../src/observe/inspect-queue.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { InboxOptions } from '../../src/receive/inbox-options.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { EncryptionOptions } from '../../src/store/encryption.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { capture, fixtures, signedRequest } from '../../src/testing.ts'
import { textsIn } from '../support/plain-text.ts'
import { secret } from '../support/receive.ts'
import { until } from '../support/until.ts'

interface Engine {
  readonly open: (name: string) => Queue
  /** Reads all that is stored of a queue, as text. */
  readonly read: (name: string) => Promise<string>
  readonly remove?: (name: string) => Promise<unknown>
  readonly inbox?: Partial<InboxOptions>
  /** Whether it can change a history in place. */
  readonly rewritesLog: boolean
}

const [BODY, HEADER, ERROR] = ['body-of-ada', 'header-of-ada', 'error-of-ada']
const [HANDLER, ANSWER] = ['crm-of-ada', 'answer-of-ada']
const HOUR = 3_600_000
const k1 = { id: 'k1', key: randomBytes(32) }
const k2 = { id: 'k2', key: randomBytes(32) }

export function testEncryption({ open, read, remove, inbox: more, rewritesLog }: Engine): void {
  function openQueue(name: string) {
    const queue = open(name)
    onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
    return queue
  }

  function newName() {
    const name = `encrypted-${randomUUID()}`
    onTestFinished(async () => void (await remove?.(name)))
    return name
  }

  function openInbox(name: string, encryption: EncryptionOptions | undefined) {
    const queue = openQueue(name)
    const inbox: InboxOptions = {
      ...more,
      queue,
      history: { maxAgeMs: HOUR },
      retries: (_, error) => (inspect(error).includes('final') ? undefined : HOUR),
      ...(encryption && { encryption }),
    }
    const receiver = createReceiver({ secret, inbox, onError: () => {} })
    const tried = new Set<string>()
    const handler = ({ type }: { readonly type: string }) => {
      tried.add(type)
      if (type !== 'track') throw new Error(`${type === 'page' ? 'final ' : ''}${ERROR}`)
    }
    receiver.on('*', handler, { name: HANDLER })
    return { receiver, queue, tried }
  }

  /** Leaves one message in the history, a dead letter, one that is retried in an hour, and one that waits. */
  async function leaveMessages(name: string, encryption?: EncryptionOptions) {
    const { receiver, queue, tried } = openInbox(name, encryption)
    const send = async (message: object) => {
      const { bytes, headers } = signedRequest(JSON.stringify({ ...message, userId: BODY }), secret)
      expect(await receiver.receive(bytes, { ...headers, 'x-trace': HEADER })).toMatchObject({ status: 200 })
    }
    for (const message of [fixtures.track, fixtures.page, fixtures.group]) await send(message)
    receiver.start()
    await until(async () => {
      const [letters, logged = []] = [await receiver.deadLetters(), await queue.log?.list()]
      return letters.length + logged.length === 2 && tried.has('group')
    })
    await queue.pause()
    await send(fixtures.identify)
    await receiver.close({ graceMs: 20_000 }) // Outcomes are recorded. SQLite loses its locks on a file that its process reads.
    return read(name)
  }

  it('stores no text of a body, a header, an error or the name of a handler', async () => {
    const texts = [BODY, HEADER, ERROR, HANDLER]
    const plain = await leaveMessages(newName())
    const encrypted = await leaveMessages(newName(), { keys: [k1] })
    expect(textsIn(plain, texts)).toEqual(texts)
    expect(textsIn(encrypted, [...texts, 'hookline":1'])).toEqual([])
  })

  it('stores no text of a message of a destination, nor of an answer', async () => {
    async function attemptIn(name: string, encryption?: EncryptionOptions) {
      const queue = openQueue(name)
      const { dispatcher, requests } = capture({ script: [{ status: 500, body: ANSWER }] })
      const options = { webhooks: [{ url: 'https://shop.example/webhooks' }], dispatcher, queue, onAttempt: () => {} }
      const destination = createDestination({ ...options, ...(encryption && { encryption }) })
      await destination.track({ userId: BODY, event: 'E' })
      await until(() => requests.length > 0)
      await destination.close({ graceMs: 20_000 })
      return textsIn(await read(name), [BODY, ANSWER])
    }

    expect(await attemptIn(newName())).toEqual([BODY, ANSWER])
    expect(await attemptIn(newName(), { keys: [k1] })).toEqual([])
  })

  it('encrypts dead letters anew, and what it can of the history', async () => {
    const name = newName()
    await leaveMessages(name, { keys: [k1] })

    const { rewrite } = inspectQueue(openQueue(name), { encryption: { keys: [k2, k1] } })
    const rewritten = await rewrite()

    const left = { k1: rewritesLog ? 2 : 3 }
    expect(rewritten).toEqual({ count: rewritesLog ? 2 : 1, left })
    expect(await rewrite()).toEqual({ count: 0, left })
    const { receiver } = openInbox(name, { keys: [k2] })
    const [letter] = await receiver.deadLetters()
    const message = { type: 'page', userId: BODY }
    expect(letter).toMatchObject({ message, headers: { 'x-trace': HEADER }, attempts: 1, verified: 'signature' })
    expect(letter).toMatchObject({ reason: 'handler_failed', error: { message: expect.stringContaining(ERROR) } })
    for await (const handled of receiver.history()) {
      if (rewritesLog) expect(handled).toMatchObject({ message: { type: 'track' }, handlers: [HANDLER] })
      else expect(handled).toMatchObject({ message: undefined, receivedAt: undefined })
    }
  })
}
