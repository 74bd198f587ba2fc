/** The view "Dead letters": the queues, and the dead letters of one of them. */

import { useRef } from 'preact/hooks'
import { useStore } from '../connection.ts'
import { formatNumber } from '../format.ts'
import { Empty, NoQueue } from '../parts.tsx'
import { hrefOf, useRoute } from '../route.ts'
import { Letters } from './letters.tsx'
import './dead-letters.css'

/** Shows the dead letters of the queue in the URL, or of the first one that has any. */
export function DeadLettersView() {
  const setup = useStore((state) => state.setup)
  const queues = useStore((state) => state.queues)
  const { rest } = useRoute()
  /** The first that had any: it stays when its last one is gone. */
  const first = useRef<string>()
  if (setup === undefined) return null
  const parts = setup.parts.filter(({ hasQueue }) => hasQueue).map(({ name }) => name)
  const countOf = (part: string): number => queues.find((queue) => queue.part === part)?.deadLetters ?? 0
  first.current ??= parts.find((part) => countOf(part) > 0)
  const chosen = parts.find((part) => encodeURIComponent(part) === rest) ?? first.current ?? parts[0]
  return (
    <div class="view">
      <h1>Dead letters</h1>
      {chosen === undefined ? (
        <Empty>
          <NoQueue so="so no message can become a dead letter" />
        </Empty>
      ) : (
        <>
          {parts.length > 1 && (
            <nav class="queue-tabs" aria-label="Queues">
              {parts.map((part) => (
                <a
                  key={part}
                  href={hrefOf('dead-letters', encodeURIComponent(part))}
                  aria-current={part === chosen ? 'true' : undefined}
                >
                  {part} {countOf(part) > 0 && <span class="badge">{formatNumber(countOf(part))}</span>}
                </a>
              ))}
            </nav>
          )}
          <Letters key={chosen} part={chosen} />
        </>
      )}
    </div>
  )
}
