/** A receiver, what its callbacks saw, and a message sent to it without a host. */

import { onTestFinished, vi } from 'vitest'
import type { EndpointRequest } from '../../src/host/endpoint.ts'
import type { HooklineError } from '../../src/protocol/error.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { FailedRequest } from '../../src/receive/events.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { Received } from '../../src/receive/receiver-types.ts'
import type { EventSchemas, Schema, TraitSchemas } from '../../src/receive/schema.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'

export const secret = 'a shared secret'

export function deliver(
  receiver: { receive(bytes: Uint8Array, headers: Record<string, string>): Promise<Received> },
  message: object | string,
  key: string = secret,
): Promise<Received> {
  const { body, headers } = signedRequest(textOf(message), key)
  return receiver.receive(Buffer.from(body), headers)
}

/** The same bytes each time: a message without an id gets none. */
function textOf(message: object | string): string {
  return typeof message === 'string' ? message : JSON.stringify(message)
}

/** A request of a host, with a signed message. */
export function hostRequest(
  changes: Partial<EndpointRequest> = {},
  message: object | string = fixtures.track,
): EndpointRequest {
  const { bytes, headers } = signedRequest(textOf(message), secret)
  return {
    method: 'POST',
    path: '/webhooks',
    query: '',
    headers: { ...headers },
    remoteAddress: '192.0.2.1',
    readBody: () => ({ bytes, source: 'stream' }),
    ...changes,
  }
}

/** A schema of no library. */
export function schemaOf(validate: (value: unknown) => unknown): Schema<object> {
  return { '~standard': { version: 1, vendor: 'test', validate: validate as Schema<object>['~standard']['validate'] } }
}

export const refusing = schemaOf(() => ({ issues: [{ message: 'no' }] }))

/** Keeps the warnings of the process to the end of the test, and prints none. */
export function watchWarnings() {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => warn.mockRestore())
  return warn
}

// biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
export function setUp<const Events extends EventSchemas = {}, const Traits extends TraitSchemas = {}>(
  options: ReceiverOptions<Events, Traits> = {},
) {
  const clock: ManualClock = manualClock()
  const errors: HooklineError[] = []
  const failed: FailedRequest[] = []
  const receiver = createReceiver<Events, Traits>({
    ...(options.allowUnsigned ? {} : { secret }),
    clock,
    onError: (error, request) => {
      errors.push(error)
      failed.push(request)
    },
    ...options,
  })
  return { receiver, clock, errors, failed }
}
