/** Says why buttons are absent. */

/** For who may only look. `what`: `Redriving and dropping need`. */
export function ReadOnly({ what }: { readonly what: string }) {
  return (
    <p class="muted">
      {what} write access: yours is read. The app decides that in <code>authorize</code>.
    </p>
  )
}
