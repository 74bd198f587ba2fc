/** The page of the inspector. */

import './page.css'
// The styles of views come after those that they share.
import { render } from 'preact'
import { connect } from './connection.ts'
import { DeadLettersView } from './dead-letters/view.tsx'
import { DevelopmentView } from './development/view.tsx'
import { startKeys } from './keys.ts'
import { MessagesView } from './messages/list/view.tsx'
import { QueuesView } from './queues/view.tsx'
import { useRoute, type View } from './route.ts'
import { SendView } from './send/view.tsx'
import { Shell } from './shell/shell.tsx'
import { startTheme } from './shell/theme.tsx'

const VIEWS: Readonly<Record<View, () => preact.ComponentChild>> = {
  messages: MessagesView,
  queues: QueuesView,
  'dead-letters': DeadLettersView,
  send: SendView,
  development: DevelopmentView,
}

function Page() {
  const { view } = useRoute()
  const Content = VIEWS[view]
  return (
    <Shell view={view}>
      <Content key={view} />
    </Shell>
  )
}

startTheme()
startKeys()
connect()
render(<Page />, document.querySelector('#page') as Element)
