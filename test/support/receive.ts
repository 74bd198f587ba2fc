/** A receiver, what its callbacks saw, and a message sent to it without a host. */

import type { FailedRequest } from '../../src/handling/diagnostics.ts'
import type { EventSchemas, TraitSchemas } from '../../src/handling/schema.ts'
import type { HooklineError } from '../../src/message/error.ts'
import type { Received } from '../../src/receiver/api.ts'
import type { ReceiverOptions } from '../../src/receiver/options.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'

export const secret = 'a shared secret'

export function deliver(
  receiver: { receive(bytes: Uint8Array, headers: Record<string, string>): Promise<Received> },
  message: object | string,
  key: string = secret,
): Promise<Received> {
  const { body, headers } = signedRequest(message, key)
  return receiver.receive(Buffer.from(body), headers)
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
