/** What the list says when it is empty. */

import { useStore } from '../../connection.ts'
import { Empty } from '../../parts.tsx'
import { hrefOf } from '../../route.ts'
import { CopyButton } from '../copy-button.tsx'

const COMMAND = 'npx hookline send track --to http://localhost:3000/webhooks'

/** Says why no row is shown, and what to do. */
export function NoRows({ isFiltered, onClear }: { readonly isFiltered: boolean; readonly onClear: () => void }) {
  const hasRows = useStore((state) => state.hasRows)
  const canSend = useStore((state) => state.setup?.access === 'write' && state.setup.senders.length > 0)
  const hasQueuesAlone = useStore((state) => state.setup?.parts.every(({ kind }) => kind === 'queue') ?? false)
  const isOfListen = useStore((state) => state.setup?.command === 'listen')
  if (!hasRows) return <Empty>Loading…</Empty>
  if (hasQueuesAlone) {
    return (
      <Empty>
        Queues are looked into from outside their processes, so messages are not seen as they pass. See the counts under{' '}
        <a href={hrefOf('queues')}>Queues</a>, and what failed under <a href={hrefOf('dead-letters')}>Dead letters</a>.
      </Empty>
    )
  }
  if (isFiltered) {
    return (
      <Empty>
        <p>No message passes the filters.</p>
        <button type="button" onClick={onClear}>
          Clear filters
        </button>
      </Empty>
    )
  }
  if (isOfListen) {
    return (
      <Empty>
        <strong>No requests yet.</strong> They are shown here as soon as they arrive at the URL that{' '}
        <code>hookline listen</code> printed.
      </Empty>
    )
  }
  return (
    <Empty>
      <p>
        <strong>No messages yet.</strong> They are shown here as soon as they arrive.
      </p>
      {canSend ? (
        <a class="button" href={hrefOf('send')}>
          Send a message
        </a>
      ) : (
        <>
          <p>Send one to your endpoint, with its secret in HOOKLINE_SECRET:</p>
          <p class="row">
            <code>{COMMAND}</code>
            <CopyButton label="Copy" text={() => COMMAND} />
          </p>
        </>
      )}
    </Empty>
  )
}
