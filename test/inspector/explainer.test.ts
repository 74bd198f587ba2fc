import { createHmac } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { createExplainer } from '../../src/inspector/explainer.ts'
import { BODY_LIMIT } from '../../src/message/limits.ts'

const body = Buffer.from('{"type":"track"}')
const forged = (secret: string) => createHmac('sha256', secret).update(body).digest('hex')

function setUp(maxWaiting?: number) {
  const explainer = createExplainer(maxWaiting)
  onTestFinished(() => explainer.close())
  return explainer
}

it('explains each signature with the secret of its call', async () => {
  const { explain } = setUp()
  const found = await Promise.all([
    explain(body, forged('one'), 'one'),
    explain(body, forged('two'), 'two'),
    explain(body, forged('one'), 'two'),
    explain(body, undefined, 'one'),
  ])
  expect(found.map((each) => each?.verdict)).toEqual(['explained', 'explained', 'unexplained', 'explained'])
  expect(body.toString()).toBe('{"type":"track"}')
})

it('takes bodies of 512 KiB, and none that is larger', async () => {
  const { explain } = setUp()
  expect(await explain(Buffer.alloc(BODY_LIMIT + 1), forged('one'), 'one')).toBeUndefined()
  expect((await explain(Buffer.alloc(BODY_LIMIT), forged('one'), 'one'))?.verdict).toBe('unexplained')
})

it('lets so many wait while it explains one, and takes more when it has answered', async () => {
  const { explain } = setUp(2)
  const ask = () => explain(body, forged('one'), 'one')
  const found = await Promise.all([ask(), ask(), ask(), ask()])
  expect(found.map((each) => each?.verdict)).toEqual(['explained', 'explained', 'explained', undefined])
  expect((await ask())?.verdict).toBe('explained')
})

it('answers without an explanation when it is closed meanwhile or when its thread fails', async () => {
  const { explain, close } = setUp()
  expect(await explain(body, forged('one'), '')).toBeUndefined()
  expect((await explain(body, forged('one'), 'one'))?.verdict).toBe('explained')
  const large = Buffer.from(JSON.stringify({ items: Array(20_000).fill({ name: 'Café <b>', price: 39.5 }) }))
  const cut = explain(large, forged('another'), 'one') // It takes a second or more.
  await close()
  expect([await cut, await explain(body, forged('one'), 'one')]).toEqual([undefined, undefined])
})
