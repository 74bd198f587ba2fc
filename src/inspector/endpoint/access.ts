/** Who may see the inspector, and who may change things with it. Closed, unless a token or `authorize` opens it. */

import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { EndpointRequest } from '../../http/endpoint.ts'
import { kindOf } from '../../options/checks.ts'
import type { Log } from '../../options/log.ts'
import type { AccessRequest, Authorize } from '../api.ts'
import type { Access } from '../wire.ts'
import { Refusal } from './answers.ts'
import { requireLocal } from './local.ts'

/** Decides about requests. */
export interface Guard {
  /**
   * Returns what whoever sent a request may do.
   *
   * @throws Refusal (as a rejection) for who may do nothing.
   */
  check(request: AccessRequest): Promise<Access>
  /** Whether `check` has to be asked again for a request that goes on. */
  readonly isAskedAgain: boolean
  /** The cookie that lets a browser in, of a request with the token in its query; undefined without one. */
  cookieFor(request: EndpointRequest): string | undefined
  /** Adds the token to the URL of a mount. Throws where `authorize` decides. */
  url(mount: string): string
}

/** Creates the guard of an inspector: by `authorize`, else by a token, which is random unless it is given. */
export function createGuard({ authorize, token, log }: GuardOptions): Guard {
  return authorize === undefined ? createTokenGuard(token) : createAuthorizeGuard(authorize, log)
}

/** What decides. */
export interface GuardOptions {
  readonly authorize?: Authorize | undefined
  readonly token?: string | undefined
  readonly log: Log
}

/** Lets whoever has the token in, over a connection of this machine. */
function createTokenGuard(token: string = randomBytes(32).toString('base64url')): Guard {
  const expected = Buffer.from(token)

  function isToken(text: string): boolean {
    const given = Buffer.from(text)
    return given.length === expected.length && timingSafeEqual(given, expected)
  }

  return {
    isAskedAgain: false,
    async check(request) {
      const name = cookieName(requireLocal(request))
      const cookies = String(request.headers.cookie ?? '').split(';')
      const values = cookies.flatMap((cookie) => {
        const [key, value] = cookie.trim().split('=', 2)
        return key === name && value !== undefined ? [value] : []
      })
      if (values.some(isToken)) return 'write'
      throw new Refusal(
        403,
        'The inspector needs the token of its URL. Got a request without it, or with an old one. Open the whole URL that the app printed when it started, or pass `authorize` to createInspector.',
      )
    },
    cookieFor(request) {
      const given = new URLSearchParams(request.query).get('token')
      if (given === null) return undefined
      const port = requireLocal(request)
      // Without a path of its own, a cookie is sent to the folder of the URL that set it: where the inspector is mounted.
      return isToken(given) ? `${cookieName(port)}=${token}; HttpOnly; SameSite=Strict` : undefined
    },
    url: (mount) => `${mount.replace(/\/$/, '')}/?token=${token}`,
  }
}

/** Cookies do not separate the ports of a host. */
function cookieName(port: string): string {
  return `hookline_inspector_${port}`
}

/** Asks the app. */
function createAuthorizeGuard(authorize: Authorize, log: Log): Guard {
  async function ask(request: AccessRequest): Promise<Access | false> {
    const fault = { level: 'error', code: 'authorize_failed' } as const
    try {
      const access: unknown = await authorize(request)
      if (access === 'read' || access === 'write' || access === false) return access
      const text = `\`authorize\` must return false, 'read' or 'write'. Got ${kindOf(access)}. The request was refused.`
      log.write({ ...fault, text })
    } catch (thrown) {
      log.write({ ...fault, text: '`authorize` failed, so the request was refused.', thrown })
    }
    return false
  }

  return {
    isAskedAgain: true,
    async check({ method, path, headers, remoteAddress }) {
      const access = await ask({ method, path, headers, remoteAddress })
      if (access !== false) return access
      throw new Refusal(403, 'The inspector is closed to this request: `authorize` of createInspector refused it.')
    },
    cookieFor: () => undefined,
    url() {
      throw new TypeError(
        '`url` adds the token of an inspector. Got one with `authorize`, which has none. Print the URL of its mount.',
      )
    },
  }
}
