/** What each URL answered to a message that was sent. */

import type { AttemptLine, Sent } from '../../wire.ts'
import { formatCount, formatDuration, formatExactTime } from '../format.ts'
import { AttemptAnswer, resultOf, StateSign } from '../parts.tsx'
import { Text } from '../text.tsx'

/** `Accepted: 1 of 2 attempts.` */
export function describeSent({ attempts }: Sent): string {
  return `Accepted: ${attempts.filter(({ ok }) => ok).length} of ${formatCount(attempts.length, 'attempt')}.`
}

/** One entry for each attempt. */
export function Result({ sent }: { readonly sent: Sent }) {
  return (
    <section class="panel" aria-label="Result">
      <p class="result-head">
        <b>{describeSent(sent)}</b>
      </p>
      <ul>
        {sent.attempts.map((attempt, index) => (
          <Attempt key={`${attempt.url} ${index}`} attempt={attempt} />
        ))}
      </ul>
    </section>
  )
}

function Attempt({ attempt }: { readonly attempt: AttemptLine }) {
  const { url, at, durationMs, ok } = attempt
  return (
    <li class="attempt">
      <p class="row">
        <span class="state-name">
          <StateSign state={ok ? 'done' : 'failed'} />
          <b>{resultOf(attempt)}</b>
        </span>
        <span class="mono attempt-url">
          <Text value={url} />
        </span>
        <span class="muted">
          {formatDuration(durationMs)}, at {formatExactTime(at)}
        </span>
      </p>
      <AttemptAnswer attempt={attempt} />
    </li>
  )
}
