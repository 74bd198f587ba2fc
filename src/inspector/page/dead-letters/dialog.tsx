/** The dialog between wanting to change dead letters and changing them: it shows what would happen. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Change, Changed } from '../../wire.ts'
import { post } from '../connection.ts'
import { Failure } from '../parts.tsx'
import { type Action, describeDone, describePlan, type Scope } from './wording.ts'

/** A change that is asked for. */
export interface Wanted {
  readonly action: Action
  readonly part: string
  readonly scope: Scope
}

/** The change, and what is called when the dialog closes. */
export interface ChangeDialogProps extends Wanted {
  /** @param done What happened; undefined: nothing. */
  onClose(done: string | undefined): void
}

/** Asks for a dry run, shows it, and changes the dead letters when that is confirmed. */
export function ChangeDialog({ action, part, scope, onClose }: ChangeDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [plan, setPlan] = useState<Changed>()
  const [error, setError] = useState<string>()
  const [isChanging, setChanging] = useState(false)
  const change = (dryRun: boolean): Promise<Changed> => {
    const body: Change = { part, ...scope, dryRun }
    return post<Changed>(action, body)
  }
  // The parent shows one dialog for each change that is asked for: this runs once.
  useEffect(() => {
    dialog.current?.showModal()
    change(true).then(setPlan, (thrown: Error) => setError(thrown.message))
  }, [])
  const close = (done?: string): void => {
    dialog.current?.close() // It gives the focus back.
    onClose(done)
  }
  const confirm = async (): Promise<void> => {
    setChanging(true)
    setError(undefined)
    try {
      close(describeDone(action, await change(false)))
    } catch (thrown) {
      setError((thrown as Error).message)
      setChanging(false)
    }
  }
  const verb = action === 'redrive' ? 'Redrive' : 'Drop'
  return (
    <dialog
      ref={dialog}
      class="change"
      aria-labelledby="change-title"
      aria-describedby="change-plan"
      onCancel={(event) => {
        event.preventDefault()
        if (!isChanging) close()
      }}
    >
      <h2 id="change-title">{verb} dead letters</h2>
      <p id="change-plan" role="status">
        {plan === undefined ? error === undefined && 'Counting…' : describePlan(action, part, plan)}
      </p>
      {action === 'drop' && plan !== undefined && plan.count > 0 && (
        <p class="muted">What is dropped is gone: it cannot be redriven any more.</p>
      )}
      {error !== undefined && <Failure>{error}</Failure>}
      <div class="row dialog-buttons">
        <button type="button" onClick={() => close()} disabled={isChanging}>
          Cancel
        </button>
        <button
          type="button"
          class={action === 'drop' ? 'danger' : 'primary'}
          disabled={plan === undefined || plan.count === 0 || isChanging}
          onClick={() => void confirm()}
        >
          {isChanging ? 'Working…' : verb}
        </button>
      </div>
    </dialog>
  )
}
