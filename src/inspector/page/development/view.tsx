/** The view "Faults and time". */

import { useStore } from '../connection.ts'
import { Empty } from '../parts.tsx'
import { Faults } from './faults.tsx'
import { TimePanel } from './time.tsx'
import './development.css'

/** Shows the faults of each receiver, and the clock of the app. */
export function DevelopmentView() {
  const setup = useStore((state) => state.setup)
  const time = useStore((state) => state.time)
  if (setup === undefined) return null
  if (!setup.development && time === undefined) {
    return (
      <div class="view">
        <h1>Faults and time</h1>
        <Empty>
          For development only: pass <code>development: true</code> to <code>createInspector</code>.
        </Empty>
      </div>
    )
  }
  const mayWrite = setup.access === 'write'
  const receivers = setup.parts.filter(({ kind }) => kind === 'receiver').map(({ name }) => name)
  return (
    <div class="view">
      <h1>Faults and time</h1>
      <TimePanel time={time} mayWrite={mayWrite} />
      <Faults receivers={receivers} mayWrite={mayWrite} />
    </div>
  )
}
