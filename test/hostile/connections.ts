/** Attacks on connections: slow, abandoned, reset, and without TLS. */

import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { type Attack, aborted, countOutcome, FORGED, head, inParallel, LARGE_BODY, openSocket } from './attack.ts'

/** A stream must be closed a second after its answer: four times that, for a machine that has much else to do. */
const CLOSED_MS = 4_000

/** Bodies that come a few bytes at a time. */
export const slowBodies: Attack = {
  met: ['503'],
  never: ['200'],
  async run({ http1 }, signal, counts) {
    await inParallel(40, signal, async () => {
      const socket = await openSocket(http1)
      socket.once('data', (data) => countOutcome(counts, data.toString('latin1', 9, 12)))
      socket.write(head('/inline', 100_000))
      while (!socket.closed && !signal.aborted) {
        socket.write('{"type":  ')
        await wait(200)
      }
      socket.destroy()
    })
  },
}

export const abandonedUploads: Attack = {
  met: ['abandoned'],
  never: [],
  async run({ http1 }, signal, counts) {
    await inParallel(20, signal, async () => {
      const socket = await openSocket(http1)
      socket.write(head('/stored', 400_000))
      socket.write(LARGE_BODY.subarray(0, 100_000))
      await wait(20)
      socket.destroy()
      countOutcome(counts, 'abandoned')
    })
  },
}

/** Streams of HTTP/2 whose uploads never end. The server must close each after its answer. */
export const unfinishedStreams: Attack = {
  met: ['503', 'closed'],
  never: ['200', 'left open'],
  async run({ http2 }, signal, counts) {
    const abandon = async (session: ClientHttp2Session): Promise<void> => {
      const stream = session.request({ ':method': 'POST', ':path': '/inline', ...FORGED }).on('error', () => {})
      const closed = new Promise((resolve) => stream.once('close', () => resolve('closed'))) // It may follow at once.
      stream.resume().write(LARGE_BODY.subarray(0, 16_000))
      const [answer] = await once(stream, 'response')
      countOutcome(counts, `${answer[':status']}`)
      const since = performance.now()
      const late = wait(CLOSED_MS, 'left open', { ref: false })
      countOutcome(counts, `${await Promise.race([late, closed])}`)
      const ms = Math.round(performance.now() - since)
      counts.set('slowest, in ms', Math.max(ms, counts.get('slowest, in ms') ?? 0))
    }
    await inParallel(2, signal, async () => {
      const session = connectHttp2(`http://127.0.0.1:${http2}`).on('error', () => {})
      const streams = Array.from({ length: 50 }, () => abandon(session).catch(() => {}))
      await Promise.race([Promise.all(streams), aborted(signal)])
      session.destroy()
    })
  },
}

/** Streams of HTTP/2 that are reset as soon as they are opened. */
export const resets: Attack = {
  met: ['reset'],
  never: [],
  async run({ http2 }, signal, counts) {
    await inParallel(1, signal, async () => {
      const session = connectHttp2(`http://127.0.0.1:${http2}`).on('error', () => {})
      await once(session, 'connect')
      for (let turn = 0; turn < 20 && !session.destroyed && !signal.aborted; turn += 1) {
        for (let index = 0; index < 50 && !session.destroyed; index += 1) {
          const stream = session.request({ ':method': 'POST', ':path': '/stored', ...FORGED }).on('error', () => {})
          stream.close(constants.NGHTTP2_CANCEL)
          countOutcome(counts, 'reset')
        }
        await wait(20)
      }
      session.destroy()
    })
  },
}

/** Handshakes that are no TLS, that end in the middle, and that end because the client distrusts the certificate. */
export const failedHandshakes: Attack = {
  met: ['not TLS', 'cut', 'distrusted'],
  never: ['trusted'],
  async run({ https }, signal, counts) {
    const started = Buffer.from('1603010200010001fc0303', 'hex')
    await Promise.all([
      inParallel(2, signal, async () => {
        const socket = connectTls({ port: https, host: '127.0.0.1', rejectUnauthorized: true })
        const end = once(socket, 'secureConnect').then(
          () => 'trusted',
          () => 'distrusted',
        )
        countOutcome(counts, await end)
        socket.destroy()
        await wait(50)
      }),
      inParallel(2, signal, async () => {
        const socket = await openSocket(https)
        socket.resume().write(head('/inline', 10))
        await once(socket, 'close')
        countOutcome(counts, 'not TLS')
        await wait(50)
      }),
      inParallel(2, signal, async () => {
        const socket = await openSocket(https)
        socket.resume().write(started)
        await wait(70)
        socket.destroy()
        countOutcome(counts, 'cut')
      }),
    ])
  },
}
