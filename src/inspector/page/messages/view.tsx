/** The view "Messages": the list, and the message that is open. */

import { useStore } from '../connection.ts'
import { formatCount } from '../format.ts'
import { Empty } from '../parts.tsx'

export function MessagesView() {
  const rows = useStore((state) => state.rows)
  return (
    <div class="view">
      <h1>Messages</h1>
      {rows.length === 0 ? <Empty>No messages yet.</Empty> : <p>{formatCount(rows.length, 'message')}</p>}
    </div>
  )
}
