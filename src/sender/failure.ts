/** What an error of a connection means. */

import type { AttemptError } from './api.ts'
import type { Target } from './webhooks.ts'

/** Thrown by the guard of addresses; see private-address.ts. */
export const PRIVATE_ADDRESS = 'HOOKLINE_PRIVATE_ADDRESS'

/** The class of an error, and what it says. */
export function explain(
  error: unknown,
  { path, shown }: Pick<Target, 'path' | 'shown'>,
): { readonly error: AttemptError; readonly reason: string } {
  const code = codeOf(error)
  const said = error instanceof Error && error.message !== '' ? error.message : code
  // Not ours to trust: a dispatcher may quote the path, and its query may hold a token.
  const reason = path.includes('?') ? said.replaceAll(path, shown) : said
  return { error: classify(code), reason: reason.slice(0, MOST_SAID) }
}

const MOST_SAID = 200

/** Of several addresses that were tried, the first tells; an error without a code has a cause, or at least a name. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code, errors, cause } = error as { code?: unknown; errors?: readonly unknown[]; cause?: unknown }
  if (typeof code === 'string') return code
  if (error.name === 'HTTPParserError' && error.message.includes('EOF')) return 'ECONNRESET' // Cut off between chunks.
  const inner = errors?.[0] ?? cause
  return inner === undefined ? error.name : codeOf(inner)
}

function classify(code: string): AttemptError {
  for (const [pattern, error] of CLASSES) if (pattern.test(code)) return error
  return 'reset'
}

const CLASSES: readonly (readonly [RegExp, AttemptError])[] = [
  [/^DEPTH_ZERO_SELF_SIGNED_CERT/, 'self_signed'],
  [/TIMEOUT|ETIMEDOUT/, 'timeout'],
  [
    /^(CERT_|UNABLE_TO_|SELF_SIGNED_CERT_IN_CHAIN|ERR_TLS|ERR_SSL|ERR_OSSL|ERROR_IN_CERT|INVALID_|EPROTO|HOSTNAME_MISMATCH|PATH_LENGTH)/,
    'tls',
  ],
  [/^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/, 'dns'],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRNOTAVAIL|EACCES|EMFILE|ENFILE)/, 'refused'],
  [/^(HPE_|HTTPParserError|UND_ERR_HEADERS_OVERFLOW)/, 'http'],
  [/^(UND_ERR_DESTROYED|UND_ERR_CLOSED)/, 'closed'],
  [new RegExp(`^${PRIVATE_ADDRESS}$`), 'private_address'],
]
