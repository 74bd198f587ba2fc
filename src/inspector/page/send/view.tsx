/** The view "Send": a message that is made here or taken from the list, and what its URLs answer. */

import type { Detail } from '../../wire.ts'
import { useAnswer } from '../answer.ts'
import { useStore } from '../connection.ts'
import { Empty, Failure } from '../parts.tsx'
import { hrefOf, useRoute } from '../route.ts'
import { Composer } from './composer.tsx'
import './send.css'

/** Shows the composer; `?from=12` begins with the body of that message. */
export function SendView() {
  const setup = useStore((state) => state.setup)
  const from = useRoute().query.get('from')
  if (setup === undefined) return null
  return (
    <div class="view">
      <h1>Send</h1>
      {setup.senders.length === 0 ? (
        <Empty>
          {setup.command === undefined ? (
            <>
              Nothing to send with. Pass <code>senders</code> to <code>createInspector</code>: messages go to the URLs
              of these senders, and to no others.
            </>
          ) : (
            <>
              This page sends nothing. Run <code>npx hookline send track --to URL</code>.
            </>
          )}
        </Empty>
      ) : from === null ? (
        <Composer key="sample" setup={setup} text={undefined} />
      ) : (
        <FromMessage key={from} id={from} />
      )}
    </div>
  )
}

function FromMessage({ id }: { readonly id: string }) {
  const setup = useStore((state) => state.setup)
  const { answer, error } = useAnswer<Detail>('message', { id })
  if (error !== undefined) return <Failure>{error}</Failure>
  if (answer === undefined || setup === undefined) return null
  return (
    <>
      <p class="muted">
        From <a href={hrefOf('messages', id)}>message {id}</a>. <a href={hrefOf('send')}>Begin with a sample</a>{' '}
        instead.
      </p>
      <Composer setup={setup} text={answer.body.text ?? ''} />
    </>
  )
}
