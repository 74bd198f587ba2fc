/** A request as `hookline listen` keeps it, for tests of the commands that read the store. */

import type { KeptRequest } from '../src/requests/kept-request.ts'

/** A verified POST of an empty body, answered 200; with others in place of these. */
export function keptRequest(id: string, others: Partial<KeptRequest> = {}): KeptRequest {
  const body = others.body ?? Buffer.alloc(0)
  return {
    ...{ id, receivedAt: Date.parse('2026-01-15T09:30:00.000Z'), method: 'POST', target: '/webhooks', headers: [] },
    ...{ size: body.length, isComplete: true, message: {}, verification: 'verified', body },
    answer: { status: 200, headers: [], by: 'listen', durationMs: 2 },
    answerBody: Buffer.alloc(0),
    ...others,
  }
}
