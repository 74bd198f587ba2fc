/** The view "Queues". */

import { Empty } from './parts.tsx'

export function QueuesView() {
  return (
    <div class="view">
      <h1>Queues</h1>
      <Empty>No queue is watched. Pass a receiver with an inbox, or a destination, to createInspector.</Empty>
    </div>
  )
}
