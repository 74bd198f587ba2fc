/** The view "Dead letters". */

import { Empty } from './parts.tsx'

export function DeadLettersView() {
  return (
    <div class="view">
      <h1>Dead letters</h1>
      <Empty>No dead letters. A message whose last attempt failed is shown here.</Empty>
    </div>
  )
}
