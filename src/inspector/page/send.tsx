/** The view "Send". */

import { Empty } from './parts.tsx'

export function SendView() {
  return (
    <div class="view">
      <h1>Send</h1>
      <Empty>No sender to send with. Pass senders to createInspector.</Empty>
    </div>
  )
}
