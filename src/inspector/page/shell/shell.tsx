/** What is around each view: navigation, the state of the connection, the theme. */

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { useStore } from '../connection.ts'
import { formatNumber } from '../format.ts'
import { Announcer } from '../parts.tsx'
import { hrefOf, type View } from '../route.ts'
import { KeysHelp } from './keys-dialog.tsx'
import { ThemeSwitch } from './theme.tsx'

/** Of the views, for links and titles. */
const NAMES: Readonly<Record<View, string>> = {
  messages: 'Messages',
  queues: 'Queues',
  'dead-letters': 'Dead letters',
  send: 'Send',
  development: 'Faults and time',
}

/** Draws what is around a view. */
export function Shell({ view, children }: { readonly view: View; readonly children: ComponentChildren }) {
  const setup = useStore((state) => state.setup)
  const link = useStore((state) => state.link)
  const refusal = useStore((state) => state.refusal)
  const dead = useStore((state) => state.queues.reduce((sum, { deadLetters }) => sum + deadLetters, 0))
  const views = (Object.keys(NAMES) as View[]).filter((each) => each !== 'development' || setup?.development === true)
  useEffect(() => {
    document.title = `${NAMES[view]} · Hookline`
  }, [view])
  return (
    <>
      <header class="top">
        <button type="button" class="skip" onClick={skip}>
          Skip to the content
        </button>
        <span class="brand">Hookline</span>
        <nav aria-label="Views">
          <ul>
            {views.map((each) => (
              <li key={each}>
                <a href={hrefOf(each)} aria-current={each === view ? 'page' : undefined}>
                  {NAMES[each]}
                  {each === 'dead-letters' && dead > 0 && <span class="badge">{formatNumber(dead)}</span>}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        {setup?.access === 'read' && <span class="tag">read only</span>}
        <KeysHelp />
        <ThemeSwitch />
      </header>
      <div role="status" class="banner-place">
        {link === 'lost' && refusal === undefined && <p class="banner">Connection lost. Trying again…</p>}
      </div>
      <main id="main" tabIndex={-1}>
        {refusal === undefined ? children : <p class="refusal">{refusal}</p>}
      </main>
      <Announcer />
    </>
  )
}

/** A button: a link to `#main` would be a route. */
function skip(): void {
  document.querySelector<HTMLElement>('#main')?.focus()
}
