/** One signed POST to one URL, and what happened. */

import { type DispatcherLike, type PendingPost, type PostRequest, type PostTiming, post } from '../protocol/post.ts'
import type { Attempt } from './api.ts'
import { explain } from './failure.ts'
import type { Target } from './webhooks.ts'

/** Most bytes of a body that an {@link Attempt} quotes. */
const EXCERPT = 256

/** What an attempt goes through. */
export interface Transport extends PostTiming {
  readonly dispatcher: DispatcherLike
  /** Hears of each POST when it begins, and when it ends. */
  begin(post: PendingPost): void
  end(post: PendingPost): void
}

/** Posts. Never rejects: whatever happens is in the attempt. */
export function attempt(
  transport: Transport,
  target: Target,
  { headers, body }: Pick<PostRequest, 'headers' | 'body'>,
): Promise<Attempt> {
  const { dispatcher, clock } = transport
  const at = clock.now()
  const start = clock.monotonic()
  const { origin, path, shown: url } = target
  return new Promise((resolve) => {
    const underWay = post(dispatcher, { origin, path, headers, body }, transport, (outcome) => {
      transport.end(underWay)
      const { status, retryAfterMs, error } = outcome
      const durationMs = Math.round(clock.monotonic() - start)
      const excerpt = outcome.body.toString('utf8', 0, EXCERPT)
      if (status === undefined)
        return resolve({ url, at, durationMs, ok: false, ...explain(error, target), body: excerpt })
      const ok = status >= 200 && status < 300
      resolve({
        url,
        at,
        durationMs,
        ok,
        status,
        ...(!ok && retryAfterMs !== undefined && { retryAfterMs }),
        body: excerpt,
      })
    })
    transport.begin(underWay)
  })
}
