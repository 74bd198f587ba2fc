/** Explains connection errors: their kind, what is wrong, and what to do. */

import { describeError } from '../protocol/error.ts'

/** The reason why an attempt got no complete response. */
export type AttemptError =
  /** No complete response arrived in time. A sender waits 5 seconds, including the time to connect. */
  | 'timeout'
  /** The TLS handshake failed, or the certificate has expired, is for another host, or cannot be verified. */
  | 'tls'
  /** The certificate is self-signed. No byte of the request was sent. */
  | 'self_signed'
  /** The host name did not resolve. */
  | 'dns'
  /** The address refused the connection or is unreachable. */
  | 'refused'
  /** The connection ended before the response was complete. */
  | 'reset'
  /** The response was not HTTP, or was longer than its limits. */
  | 'http'
  /** The server sent `100 Continue` or `101 Switching Protocols`, although the request did not ask for it. */
  | 'unexpected_continue'
  /** The address is private and `allowPrivateAddresses` is false. No byte of the request was sent. */
  | 'private_address'
  /** The sender was closed before the response was complete. */
  | 'closed'

export interface Explanation {
  readonly error: AttemptError
  /** The code of the error or, if it has none, its name. Never text that a server wrote. */
  readonly code: string
  readonly rule: string
  /** The value or the state that was found. May quote the server. */
  readonly found: string
  readonly advice: string
}

const FOUND_LENGTH = 200

/** Explains the error of a connection. The last entry of `KINDS` matches every error. */
export function explainConnectionError(thrown: unknown): Explanation {
  const code = codeOf(thrown)
  const [, error, rule, advice, found = textOf(thrown, code)] = KINDS.find(([pattern]) => pattern.test(code)) as Kind
  return { error, code, rule, found, advice }
}

/**
 * Returns the code of the error, of the first address that failed, or of the cause. If none of these has a code, returns the error's name.
 */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code, errors, cause }: { code?: unknown; errors?: readonly unknown[]; cause?: unknown } = error
  if (code === 'UND_ERR_SOCKET' && /^bad (response|upgrade)$/.test(error.message)) return `${code}: ${error.message}`
  if (typeof code === 'string') return code
  if (error.name === 'HTTPParserError' && error.message.includes('EOF')) return 'ECONNRESET' // The response ended between chunks.
  const inner = errors?.[0] ?? cause
  return inner === undefined ? error.name : codeOf(inner)
}

/** Returns the message on one line, short and without a full stop. */
function textOf(error: unknown, code: string): string {
  const text = describeError(error)
    .replace(/[\s\p{C}]+/gu, ' ')
    .replace(/[. ]+$/, '')
  return text === '' ? code : text.slice(0, FOUND_LENGTH)
}

type Kind = readonly [pattern: RegExp, error: AttemptError, rule: string, advice: string, found?: string]

/** The kinds of errors, by their codes. The first entry whose pattern matches applies. */
const KINDS: readonly Kind[] = [
  [
    /^DEPTH_ZERO_SELF_SIGNED_CERT/,
    'self_signed',
    'The certificate must be signed by an authority',
    'Install a certificate from an authority on the server: no option allows a self-signed one.',
    'a self-signed certificate',
  ],
  [
    /TIMEOUT|ETIMEDOUT/,
    'timeout',
    'The server must respond in time',
    'Check that the server can be reached, and make it respond before it does slow work.',
  ],
  [
    /^(UNABLE_TO_|SELF_SIGNED_CERT_IN_CHAIN|CERT_UNTRUSTED|CERT_REJECTED)/,
    'tls',
    'The certificate must be signed by a trusted authority',
    'Check whether the server lacks an intermediate certificate. If the authority is private, pass its root certificate as `ca`.',
    'a certificate from an unknown authority',
  ],
  [
    /^CERT_HAS_EXPIRED/,
    'tls',
    'The certificate must be valid now',
    'Renew the certificate on the server, and check the clock of this machine.',
    'a certificate that has expired',
  ],
  [
    /^CERT_NOT_YET_VALID/,
    'tls',
    'The certificate must be valid now',
    'Check the clock of this machine and the certificate on the server.',
    'a certificate that is not valid yet',
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)/,
    'tls',
    'The certificate must be for the host of the URL',
    'Use a host that the certificate names, or install a certificate for this host on the server.',
  ],
  [
    // UNSPECIFIED is the code for weak keys and digests, for example.
    /^(CERT_|CRL_|ERROR_IN_|INVALID_|PATH_LENGTH|UNSPECIFIED$|OUT_OF_MEM$)/,
    'tls',
    'The certificate must be usable for TLS',
    'Replace the certificate on the server with one that browsers accept.',
  ],
  [
    /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/,
    'tls',
    'The TLS handshake must succeed',
    'Check that the server supports https on this port, with TLS 1.2 or later.',
  ],
  [
    /^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/,
    'dns',
    'The host of the URL must resolve',
    'Check the spelling of the host, and the DNS of this machine.',
  ],
  [
    /^ECONNREFUSED/,
    'refused',
    'The server must accept connections',
    'Start the server, or correct the host and the port of the URL.',
  ],
  [
    /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|EADDRNOTAVAIL|EACCES|EPERM|EMFILE|ENFILE)/,
    'refused',
    'This machine must be able to connect to the server',
    'Check the network, the firewall and the open file limit of this machine.',
  ],
  [
    /^UND_ERR_SOCKET: bad/,
    'unexpected_continue',
    'The server must send `100 Continue` or `101 Switching Protocols` only when the request asks for it',
    'Configure the server not to send such responses.',
    'an informational response',
  ],
  [
    /^(HOOKLINE_RESPONSE_TOO_LONG|UND_ERR_HEADERS_OVERFLOW)/,
    'http',
    'The response must be short',
    'Make the server respond with a status and a short body.',
    'a response that is longer than its limit',
  ],
  [
    /^(HPE_|HTTPParserError|ERR_ASSERTION)/,
    'http',
    'The response must be HTTP/1.1',
    'Check that the URL leads to a web server. For an http:// URL, check that it does not expect TLS.',
  ],
  [
    /^(UND_ERR_DESTROYED|UND_ERR_CLOSED)/,
    'closed',
    'The sender and its dispatcher must stay open until the response is complete',
    'Close them after the response.',
  ],
  [
    /^HOOKLINE_PRIVATE_ADDRESS$/,
    'private_address',
    'The server must have a public address',
    'Use another URL, or set `allowPrivateAddresses` to true if you trust this one.',
    'a host with a private or reserved address',
  ],
  [
    /^/,
    'reset',
    'The connection must stay open until the response is complete',
    'Check the logs of the server and of any proxies in front of it. For an http:// URL, check that it does not expect TLS.',
  ],
]
