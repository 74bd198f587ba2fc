/** The view "Faults and time". */

import { Empty } from './parts.tsx'

export function DevelopmentView() {
  return (
    <div class="view">
      <h1>Faults and time</h1>
      <Empty>Faults and time can be set in development only. Pass development: true to createInspector.</Empty>
    </div>
  )
}
