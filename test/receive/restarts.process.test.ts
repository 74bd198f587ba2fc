import { once } from 'node:events'
import { expect, it } from 'vitest'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { newFile } from '../store/sqlite/set-up.ts'
import { needs } from '../support/needs.ts'
import { startProgram } from '../support/program.ts'
import { deliver, secret } from '../support/receive.ts'

it('a message that ends the process dies alone: of 100 that are handled together, the others are handled', {
  ...needs('POSIX'), // Windows does not tell a killed process from one that ended with 1.
  timeout: 120_000,
}, async () => {
  const path = newFile()
  const queue = sqliteQueue({ path })
  const receiver = createReceiver({ secret, inbox: queue })
  receiver.on('track', () => {})
  for (let index = 0; index < 100; index += 1) {
    await deliver(receiver, { ...fixtures.track, userId: index === 60 ? 'poison' : `user-${index}` })
  }
  let deaths = 0
  for (let signal: unknown = 'SIGKILL'; signal === 'SIGKILL'; deaths += 1) {
    const { child } = startProgram(new URL('./programs/poison.ts', import.meta.url), [path])
    signal = (await once(child, 'exit'))[1]
  }
  expect(deaths).toBe(6) // The last one ended by itself.
  expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 1 })
  const [letter] = await receiver.deadLetters()
  expect([letter?.reason, letter?.message?.userId]).toEqual(['crashed', 'poison'])
  await receiver.close({ graceMs: 0 })
})
