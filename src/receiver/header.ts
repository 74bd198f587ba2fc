/** A header that a sender adds to each request, in place of a signature. */

import { createHash, timingSafeEqual } from 'node:crypto'
import type { OpenDelivery } from '../handling/open-delivery.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { HooklineError } from '../message/error.ts'
import { invalidOption, isToken, kindOf, refuseUnknown, show } from '../options/checks.ts'
import type { Clock } from '../time/clock.ts'
import { createSecretCache, type SecretProvider, type Secrets } from './secrets.ts'

/** What a sender that cannot sign adds to each request. */
export interface HeaderKey {
  /** The name of the header, in any case. */
  readonly name: string
  /**
   * Its value; several while one replaces another; or a function that returns it, called on the first request and then cached for up to
   * 5 minutes. The type admits undefined so that `process.env.X` compiles; a missing or empty one is a TypeError.
   */
  readonly value: Secrets | SecretProvider | undefined
}

export type Header = ReturnType<typeof readHeader>

/** @throws TypeError that names the option. */
export function readHeader(header: HeaderKey, clock: Clock) {
  if (typeof header !== 'object' || header === null) {
    throw invalidOption('header', 'must be { name, value }', kindOf(header), 'Pass the name and value of a header.')
  }
  refuseUnknown(header, ['name', 'value'], 'header.')
  const { name, value } = header
  if (!isToken(name)) throw invalidOption('header.name', 'must be the name of a header', show(name), 'Pass a name.')
  const key = name.toLowerCase()
  const find = createFind(value, clock)

  return {
    /** Takes the value out of the headers: nothing that observes, logs or stores the request gets it. */
    take(headers: EndpointHeaders): { readonly headers: EndpointHeaders; readonly given: EndpointHeaders[string] } {
      const { [key]: given, ...others } = headers
      return { headers: others, given }
    },
    /** @throws HooklineError `header_missing`, `header_mismatch`, or `secret_unavailable`. */
    check(delivery: OpenDelivery, given: EndpointHeaders[string]): void | Promise<void> {
      if (given === undefined || given.length === 0) {
        const text = `The request must have the header ${key}. Got none. Set it at the sender.`
        throw new HooklineError('header_missing', text)
      }
      const digest = sha256(String(given))
      const found = find((values) => {
        // All are compared, so that the time does not tell which one is right.
        const matches = values.map((other) => timingSafeEqual(other, digest))
        if (matches.includes(true)) delivery.setHeader(matches.indexOf(true))
        return matches.includes(true)
      })
      if (typeof found !== 'boolean') return found.then(requireMatch)
      requireMatch(found)
    },
  }

  function requireMatch(isRight: boolean): void {
    if (isRight) return
    const text = `The header ${key} must have the right value. Got another one. Set it at the sender.`
    throw new HooklineError('header_mismatch', text)
  }
}

type Find = (match: (values: readonly Buffer[]) => boolean) => boolean | Promise<boolean>

function createFind(value: HeaderKey['value'], clock: Clock): Find {
  if (typeof value !== 'function') {
    const digests = readValues(value)
    return (match) => match(digests)
  }
  return createSecretCache(async () => readValues(await value()), clock).match
}

function readValues(given: unknown): readonly Buffer[] {
  const values: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (values.length === 0) throw invalidOption('header.value', 'must hold a value', 'an empty list', ADVICE)
  return values.map((value, index) => {
    const name = values === given ? `header.value[${index}]` : 'header.value'
    if (typeof value !== 'string' || value === '') {
      throw invalidOption(name, 'must be a non-empty string', kindOf(value), ADVICE)
    }
    if (!SENDABLE.test(value)) {
      const found = 'one with a line break, white space around it or other characters than ASCII'
      throw invalidOption(name, 'must be a value that a header can have', found, ADVICE)
    }
    return sha256(value)
  })
}

const ADVICE = 'Pass the value that the sender sends.'

/** As HTTP carries it (RFC 9110, section 5.5), without what some clients encode in other ways. */
const SENDABLE = /^[!-~](?:[ -~]*[!-~])?$/

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
