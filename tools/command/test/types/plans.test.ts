/** Plans in each form that is kept in public: through the command and a receiver. */

import { join } from 'node:path'
import { createReceiver } from 'hookline'
import { signedRequest } from 'hookline/testing'
import { describe, expect, it } from 'vitest'
import { createFiles, hookline } from '../command.ts'
import { runCode } from './code.ts'
import { plans } from './plans.ts'

const SECRET = 'the secret of these plans'

describe.each(plans)('$name', ({ path, cases }) => {
  it.each(['zod', 'valibot'])('becomes code of %s that accepts and refuses what it does', async (format) => {
    const { code, stdout, stderr } = await hookline(['types', path, '--format', format])

    const schemas = runCode(stdout)
    const receiver = createReceiver({ secret: SECRET, ...schemas, onError: () => {} } as never)
    receiver.on('*', () => {})
    for (const { message, passes, because, unsupported } of cases) {
      const { type, event = '' } = message
      expect(type === 'track' ? schemas.events : schemas.traits).toHaveProperty([type === 'track' ? event : type])
      const { headers, bytes } = signedRequest(message as never, SECRET)
      const received = await receiver.receive(bytes, headers)
      const error = received.ok ? undefined : received.error.code
      if (unsupported !== undefined) expect(stderr).toContain(unsupported)
      // valibot says less than zod: what it does not is named, too.
      const isNamed = unsupported !== undefined || (format === 'valibot' && stderr.includes(`${event}: `))
      const expected = passes || (isNamed && error === undefined) ? undefined : 'schema_mismatch'
      expect({ error, message, because }).toEqual({ error: expected, message, because })
    }
    expect(code).toBe(0)
  })

  it('is the same after a way through JSON Schema', async () => {
    const { stdout: schema } = await hookline(['types', path, '--format', 'json-schema'])
    const file = join(await createFiles({ 'schema.json': schema }), 'schema.json')
    expect((await hookline(['types', file])).stdout).toBe((await hookline(['types', path])).stdout)
    expect((await hookline(['types', file, '--format', 'json-schema'])).stdout).toBe(schema)
  })
})
