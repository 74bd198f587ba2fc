/** Posts signed messages over many connections. */

import { Pool } from 'undici'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { secret } from './place.ts'

const CONNECTIONS = 50

export interface Load {
  /** Posts the message of an id. Resolves to the status; rejects when there is no answer. */
  post(id: string): Promise<number>
  /** Runs as many loops as there are connections, each until it resolves to false. */
  loop(turn: () => Promise<boolean>): Promise<void>
  close(): Promise<void>
}

export function createLoad(origin: string, connections = CONNECTIONS): Load {
  const pool = new Pool(origin, { connections })
  return {
    async post(id) {
      const { method, headers, body } = signedRequest({ ...fixtures.track, messageId: id }, secret)
      const response = await pool.request({ path: '/', method, headers, body })
      await response.body.dump()
      return response.statusCode
    },
    async loop(turn) {
      const run = async () => {
        while (await turn());
      }
      await Promise.all(Array.from({ length: connections }, run))
    },
    close: () => pool.destroy(),
  }
}
