/** What the demo sends and what must come of each: pure data and checks, so that a test can hold wrong outcomes against them. */

import { fixtures, type SignedRequest, signedRequest } from 'hookline/testing'

const SENT_WIDTH = 18

/** What came of a request: the status, and what the handler saw or the code of the error. */
export interface Outcome {
  readonly status: number
  readonly saw: string
}

/** One request of the demo. */
export interface DemoDelivery {
  /** What it is, for the first column. */
  readonly sent: string
  readonly request: SignedRequest
  readonly expected: Outcome
}

/** The seven messages, then one that somebody else signed and one that lost bytes on the way. */
export function createDeliveries(secret: string): DemoDelivery[] {
  const track = signedRequest(fixtures.track, secret)
  return [
    ...Object.values(fixtures).map((message) => ({
      sent: message.type,
      request: signedRequest(message, secret),
      expected: { status: 200, saw: SAW[message.type] },
    })),
    { sent: 'track, forged', request: signedRequest(fixtures.track, 'not the secret'), expected: REFUSED },
    { sent: 'track, truncated', request: { ...track, body: track.body.slice(0, -10) }, expected: REFUSED },
  ]
}

const SAW = {
  page: 'user-1 looked at /pricing',
  screen: 'user-1 opened Basket on a Pixel 9',
  identify: 'user-1 is Ada Lovelace',
  track: 'user-1: Order Completed, 39.95 EUR',
  alias: 'anonymous-1 is user-1',
  group: 'user-1 belongs to Analytical Engines',
  delete: 'user-1 wants to be forgotten',
} as const

const REFUSED: Outcome = { status: 401, saw: 'signature_mismatch' }

/** Whether it came out as it must. */
export function isRight({ expected }: DemoDelivery, outcome: Outcome): boolean {
  return outcome.status === expected.status && outcome.saw === expected.saw
}

/** One line of the table; a wrong outcome says what it should have been. */
export function toLine(delivery: DemoDelivery, outcome: Outcome): string {
  const columns = `${delivery.sent.padEnd(SENT_WIDTH)}${String(outcome.status).padStart(6)}  ${outcome.saw}`
  if (isRight(delivery, outcome)) return `✓ ${columns}`
  return `✗ ${columns} (expected ${delivery.expected.status}, ${delivery.expected.saw})`
}

/** The head of the table. */
export const head: string = `  ${'sent'.padEnd(SENT_WIDTH)}answer  what came of it`

/** The request as a command for a shell, in single quotes throughout. */
export function toCurl(url: string, { headers, body }: SignedRequest): string {
  const options = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  return [`curl -i ${url}`, ...options, `--data-raw ${quote(body)}`].join(' \\\n  ')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
