/** A dialog with a title, and with buttons that close the dialog or continue. */

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Failure } from './parts.tsx'

interface DialogProps {
  readonly title: string
  /** The label of the button that closes the dialog. */
  readonly close: 'Cancel' | 'Close'
  /** The button that continues. */
  readonly action?: {
    readonly name: string
    readonly style: 'primary' | 'danger'
    readonly isDisabled: boolean
    run(): unknown
  }
  /** The result of a dry run. */
  readonly plan?: ComponentChildren
  readonly error?: string | undefined
  /** Whether the user cannot close the dialog yet, because its action is still running. */
  readonly isHeld?: boolean
  /** Called when the dialog closes, and possibly again afterwards. */
  onClose(): void
  readonly children?: ComponentChildren
}

export function Dialog({ title, close, action, plan, error, isHeld = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close() // Closing the dialog restores the focus.
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby="dialog-title"
      aria-describedby={plan === undefined ? undefined : 'dialog-plan'}
      onCancel={(event) => isHeld && event.preventDefault()}
      onClose={onClose}
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (action?.isDisabled === false) action.run()
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        {plan !== undefined && (
          <p id="dialog-plan" role="status" class="break">
            {plan}
          </p>
        )}
        {children}
        <Failure error={error} />
        <div class="row">
          <button type="button" disabled={isHeld} onClick={() => dialog.current?.close()}>
            {close}
          </button>
          {action !== undefined && (
            <button type="submit" class={action.style} disabled={action.isDisabled}>
              {action.name}
            </button>
          )}
        </div>
      </form>
    </dialog>
  )
}
