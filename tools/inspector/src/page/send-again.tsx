/** The dialog that sends a message again with a sender of the app, and shows the answers. */

import { useState } from 'preact/hooks'
import type { SendAgain, Sent } from '../wire.ts'
import { Dialog } from './dialog.tsx'
import { formatCount, formatDuration } from './format.ts'
import { AttemptAnswer, announce, Choice, resultOf, State, Text } from './parts.tsx'
import { useAction } from './store.ts'

interface SendAgainDialogProps {
  readonly id: number
  readonly senders: readonly string[]
  onClose(): void
}

export function SendAgainDialog({ id, senders, onClose }: SendAgainDialogProps) {
  const [sender, setSender] = useState(senders[0] ?? '')
  const [sent, setSent] = useState<Sent>()
  const { isBusy, error, post } = useAction()
  const send = async (): Promise<void> => {
    setSent(undefined)
    const result = await post<Sent>('send-again', { sender, id } satisfies SendAgain)
    setSent(result)
    if (result !== undefined) announce(describeSent(result))
  }
  return (
    <Dialog
      title={`Send message ${id} again`}
      error={error}
      close="Close"
      action={{ name: isBusy ? 'Sending…' : 'Send', style: 'primary', isDisabled: isBusy, run: send }}
      onClose={onClose}
    >
      <Choice
        label="Sender"
        value={sender}
        options={senders.map((name) => [name, name])}
        onChange={({ currentTarget }) => setSender(currentTarget.value)}
      />
      <p class="muted">Signs the message, and posts it to the URLs of the sender.</p>
      {sent !== undefined && <Result sent={sent} />}
    </Dialog>
  )
}

function Result({ sent }: { readonly sent: Sent }) {
  return (
    <section aria-label="Result">
      <b>{describeSent(sent)}</b>
      {sent.attempts.map((attempt, index) => (
        <div key={index}>
          <p class="row">
            <State state={attempt.ok ? 'done' : 'failed'}>
              <b>{resultOf(attempt)}</b>
            </State>
            <span class="mono break">
              <Text value={attempt.url} />
            </span>
            <span class="muted">{formatDuration(attempt.durationMs)}</span>
          </p>
          <AttemptAnswer attempt={attempt} />
        </div>
      ))}
    </section>
  )
}

/** Describes the result of sending: `Accepted: 1 of 2 attempts.` */
function describeSent({ attempts }: Sent): string {
  return `Accepted: ${attempts.filter(({ ok }) => ok).length} of ${formatCount(attempts.length, 'attempt')}.`
}
