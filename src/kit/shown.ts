/** Decides which parts of the head of a request or a response may be shown. */

const HARMLESS = new Set(
  `accept accept-charset accept-encoding accept-language accept-ranges access-control-allow-headers access-control-allow-methods
  access-control-allow-origin access-control-request-headers access-control-request-method age allow cache-control cf-ray connection
  content-encoding content-language content-length content-type date dnt etag expect expires forwarded host keep-alive last-modified
  max-forwards pragma priority retry-after sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode
  sec-fetch-site server te traceparent trailer transfer-encoding upgrade user-agent vary via x-amzn-trace-id x-content-type-options
  x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto x-powered-by x-real-ip x-request-id`.split(/\s+/),
)

/**
 * Returns the value of a header, or undefined if the value may be secret. Only headers that are known to be harmless are shown.
 *
 * @param isVerified Whether the signature of the request is valid. An invalid signature is not shown, because it may be the secret itself,
 *   pasted into the wrong field.
 */
export function shownHeader(name: string, value: string, isVerified = false): string | undefined {
  const known = name.toLowerCase()
  if (known === 'referer' || known === 'location' || known === 'origin') return shownUrl(value)
  if (known === 'x-signature') return isVerified ? value : undefined
  return HARMLESS.has(known) ? value : undefined
}

/** Returns a URL or a request target without its credentials and its fragment. A query, which may hold a token, becomes `?…`. */
export function shownUrl(target: string): string {
  const [path = '', ...query] = (target.split(/#|%23/i, 1)[0] ?? '').split(/[?;]|%3[bf]/i)
  return path.replace(/^([\w+.-]+:)?\/\/[^/]*@/, '$1//') + (query.length === 0 ? '' : '?…')
}
