import { Readable } from 'node:stream'
import { afterEach, expect, it, vi } from 'vitest'
import { readStream } from '../../adapters/body.ts'
import { DISCARD_LIMIT } from '../../src/protocol/limits.ts'

afterEach(() => void vi.useRealTimers())

it('drops no more than its bound of a body that never ends, however fast that comes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }) // No time passes: the bound alone can end it.
  let given = 0
  const endless = new Readable({
    read() {
      if (given > 2 * DISCARD_LIMIT) return // Beyond the bound nothing comes, and a reader without one waits for ever.
      given += 64 * 1024
      this.push(Buffer.alloc(64 * 1024))
    },
  })
  await expect(readStream(endless, 1000, undefined)).rejects.toMatchObject({ code: 'body_too_large' })
})
