import { expect, it } from 'vitest'
import * as limits from '../../src/protocol/limits.ts'

it('the limits, times and names are those of the specification and of the reference', () => {
  expect({ ...limits }).toEqual({
    ...{
      RESPONSE_TIME_MS: 5_000,
      DEADLINE_MS: 4_500,
      RETRY_AFTER_S: 5,
      RETRY_WINDOW_MS: 14_400_000,
      WEBHOOKS_LIMIT: 5,
    },
    ...{ BODY_LIMIT: 524_288, ELEMENTS_LIMIT: 1_000, SIGNATURE_LENGTH: 40, SOURCE_NAME_LIMIT: 200, CALL_LIMIT: 32_768 },
    ...{ SECRET_MAX_AGE_MS: 300_000, SECRET_COOLDOWN_MS: 10_000, SECRET_RETRY_MS: 1_000, FLUSH_AT: 20 },
    ...{ DISCARD_LIMIT: 1_048_576, DISCARD_MS: 500, RESPONSE_LIMIT: 65_536, BATCH_RESPONSE_LIMIT: 1_048_576 },
    ...{ BATCH_LIMIT: 512_000, BATCH_SENT_LIMIT: 500_000, INTEGRATION_NAME: 'Webhooks', USER_AGENT: 'Hookline/1.0' },
    FLUSH_AFTER_MS: 5_000,
  })
})
