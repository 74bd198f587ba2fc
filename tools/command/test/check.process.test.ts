/** `hookline check URL`, against endpoints in Python, and in a process whose environment trusts too much. */

import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { startEndpoint } from '../../../src/testing/scripted-endpoint.ts'
import { needs } from '../../../test/support/needs.ts'
import { createFiles, spawnHookline } from './command.ts'
import { expectFault, FAILING, type Fault, findFaults, type Language, SECRET, startOther } from './endpoints/start.ts'

vi.setConfig({ maxConcurrency: 8, testTimeout: 120_000 }) // They often wait, and are many.

const { rewritten, escaped, parsedFirst } = FAILING
const FAULTS: Readonly<Partial<Record<Language, readonly Fault[]>>> = {
  python3: [
    ['', [], /^$/],
    // The bytes are changed before they are verified.
    ['json-dumps', [...rewritten, ...escaped, ...parsedFirst, 'plain-message', 'bytes-non-ascii'], /json\.dumps/],
    ['strip', ['body-extended', 'bytes-line-break-at-end', 'bytes-space-at-start'], /trims/],
    ['latin-1', ['bytes-non-ascii', 'bytes-line-separator'], /Latin-1/],
    ['text-mode', ['bytes-indented'], /line breaks/],
    ['first-4096', ['large-body'], /400 KB.*401/],

    // Another signature is expected.
    ['sha256', ['plain-message'], /HMAC-SHA256/],
    ['base64', ['plain-message'], /base64/],
    ['str-of-bytes', ['plain-message'], /str\(body\)/],

    // What was not signed is taken, or not refused by a 4xx.
    ['missing-is-fine', ['signature-missing'], /Got 200/],
    ['empty-is-fine', ['signature-missing', 'signature-empty'], /empty header/],
    ['crash-on-missing', ['signature-missing', 'unsigned-empty-body'], /connection was closed/],
    ['prefix', ['signature-start', 'signature-truncated'], /only part/],
    ['first-ten', ['signature-last-digit', 'signature-longer', 'signature-truncated'], /only part/],
    ['bytes-fromhex', ['signature-malformed', 'signature-not-hex', 'signature-truncated'], /40 hex digits/],
    ['also-sha256', ['signature-sha256'], /only the HMAC-SHA1/],
    ['unkeyed', ['signature-without-secret'], /compute/],
    ['one-body', ['signature-of-other-body'], /request's own body/],
    ['trusts-delete', ['signature-forged-types'], /Got 200 for request 7 of 7/],
    ['parses-first', parsedFirst, /before you parse the body/],

    // Correct messages are refused.
    ['unknown-fields', ['unknown-fields'], /422/],
    ['needs-message-id', ['plain-message'], /messageId/],
    ['needs-user-id', ['anonymous-id'], /anonymousId/],
    ['needs-version', ['type-delete'], /422/],
    ['no-screen', ['type-screen'], /400/],
    ['no-track', ['type-track'], /422/],
    ['no-context', ['context-object'], /422/],
    ['string-traits', ['audience-traits'], /boolean traits/],
    ['too-old', ['old-timestamp'], /age/],
    ['conflict', ['retry-identical'], /Got 409 for request 2 of 2/],
    ['limit-100-kb', ['large-body'], /limit/],
    ['hangs-on-large', ['large-body'], /within 5 s/],
    ['redirects', ['plain-message'], /302 to \/login/],
    ['always-500', ['plain-message'], /500/],
    ['hangs', ['plain-message', 'answer-in-time'], /Not sent: two requests/],

    // What warns.
    ['any-case', [], /200/],
    ['crash-on-json', [], /500/],
    ['nul', [], /\\u0000.*500/],
    ['unread-body', [], /400 for request 3 of 4/],
  ],
  node: [['half', ['type-page'], /within 5 s/]],
}

describe.concurrent.each(Object.entries(FAULTS))('an endpoint in %s', (name, faults) => {
  const language = name as Language
  it.for(faults)(
    'with the fault %j fails the right cases, and no others',
    needs(...(language === 'node' ? [] : [language])),
    (fault, test) => expectFault(language, fault, test.onTestFinished),
  )
})

it.for(['verifies-nothing', '500-on-forged', '302-on-forged', '200-with-error'])(
  'an endpoint that treats each forgery the same is told so once: %s',
  needs('python3'),
  async (fault, { onTestFinished }) => {
    const bad = await findFaults(await startOther('python3', fault, onTestFinished))
    const ids = Object.keys(bad)
    expect(ids).toEqual(expect.arrayContaining(['signature-missing', 'signature-forged', 'body-changed']))
    expect(ids.filter((id) => !/^(signature|body|forged|unsigned)-/.test(id))).toEqual([])
    expect(bad['signature-forged']?.cause).toBe(bad['body-changed']?.cause)
  },
)

it.each(['check', 'send'])('%s refuses a self-signed certificate, whatever the environment trusts', async (command) => {
  await using endpoint = await startEndpoint({ tls: 'self_signed' })
  const file = join(await createFiles({ 'ca.pem': endpoint.ca }), 'ca.pem')
  const env = { HOOKLINE_SECRET: SECRET, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_EXTRA_CA_CERTS: file }
  const args = command === 'send' ? ['send', 'track', '--to', endpoint.url] : ['check', endpoint.url]
  const { code, stdout, stderr } = await spawnHookline(args, { env }).ended
  expect([code, stdout + stderr]).toEqual([1, expect.stringMatching(/self-signed/)])
  expect(endpoint.requests).toEqual([])
})
