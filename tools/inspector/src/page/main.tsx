/** The page of the inspector: the navigation, the connection status, the theme, the keys, and the view that the URL names. */

import { type ComponentChild, render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Setup } from '../wire.ts'
import { DeadLettersView } from './dead-letters.tsx'
import { Dialog } from './dialog.tsx'
import { EventsView } from './events.tsx'
import { formatNumber } from './format.ts'
import { HistoryView } from './history.tsx'
import { MessagesView } from './message-list.tsx'
import { goTo, hrefOf, startKeys, useKeys, useRoute, VIEWS, type View } from './navigation.ts'
import { Announcer, Facts } from './parts.tsx'
import { QueuesView } from './queues.tsx'
import { connect, useStore } from './store.ts'
import './page.css'

const CONTENT: Readonly<Record<View, () => ComponentChild>> = {
  messages: MessagesView,
  events: EventsView,
  queues: QueuesView,
  'dead-letters': DeadLettersView,
  history: HistoryView,
}

function Page() {
  const route = useRoute()
  const setup = useStore((state) => state.setup)
  const isLost = useStore((state) => state.link === 'lost')
  const refusal = useStore((state) => state.refusal)
  const dead = useStore((state) => state.queues.reduce((sum, { deadLetters }) => sum + deadLetters, 0))
  const isCounted = useStore((state) => state.queues.length > 0)
  const views = viewsOf(setup)
  /** The view that a page of queues shows first. This view stays open after the last dead letter is gone. */
  const first = useRef<View>()
  if (isCounted) first.current ??= dead > 0 ? 'dead-letters' : 'queues'
  const view = views.includes(route.view) ? route.view : (first.current ?? 'queues')
  const Content = CONTENT[view]
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    document.title = `${VIEWS[view]} · Hookline`
    document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [view])
  return (
    <>
      <header class="top">
        {/* This is a button, because a link to the content would change the route. */}
        <button type="button" class="skip" onClick={() => main.current?.focus()}>
          Skip to the content
        </button>
        <span class="brand">Hookline</span>
        <nav aria-label="Views">
          {views.map((each) => (
            <a key={each} href={hrefOf(each)} aria-current={each === view ? 'page' : undefined}>
              {VIEWS[each]}
              {each === 'dead-letters' && dead > 0 && <span class="badge">{formatNumber(dead)}</span>}
            </a>
          ))}
        </nav>
        {setup?.access === 'read' && <span class="tag">read only</span>}
        <KeysHelp />
        <ThemeSwitch />
      </header>
      <div role="status">{isLost && refusal === undefined && <p class="banner">Connection lost. Trying again…</p>}</div>
      <main ref={main} tabIndex={-1}>
        {refusal === undefined ? <Content key={view} /> : <p class="empty">{refusal}</p>}
      </main>
      <Announcer />
    </>
  )
}

/** Returns the views of the page. A page of queues shows no received messages or events. */
function viewsOf(setup: Setup | undefined): readonly View[] {
  if (setup?.command === 'queue') return ['queues', 'dead-letters', 'history']
  return (Object.keys(VIEWS) as View[]).filter((view) => view !== 'history' || setup?.command !== 'listen')
}

const KEYS = [
  ['j, k or ↓, ↑', 'next and previous message'],
  ['Enter', 'open the message'],
  ['Escape', 'close it, or leave the search'],
  ['/', 'search'],
  ['p', 'pause and resume'],
  ['g m', 'messages'],
  ['g e', 'events'],
  ['g q', 'queues'],
  ['g d', 'dead letters'],
  ['g h', 'history'],
  ['?', 'these keys'],
] as const

function KeysHelp() {
  const [isOpen, setIsOpen] = useState(false)
  useKeys({
    '?': () => setIsOpen(true),
    'g m': () => goTo(hrefOf('messages')),
    'g e': () => goTo(hrefOf('events')),
    'g q': () => goTo(hrefOf('queues')),
    'g d': () => goTo(hrefOf('dead-letters')),
    'g h': () => goTo(hrefOf('history')),
  })
  return (
    <>
      <button type="button" class="quiet" onClick={() => setIsOpen(true)} title="Keys: ?">
        <span aria-hidden="true">?</span>
        <span class="unseen">Keys</span>
      </button>
      {isOpen && (
        <Dialog title="Keys" close="Close" onClose={() => setIsOpen(false)}>
          <Facts class="keys" facts={KEYS} />
        </Dialog>
      )}
    </>
  )
}

const THEMES = {
  system: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.5v11a5.5 5.5 0 0 1 0-11Z',
  light:
    'M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM7.3 0h1.4v2.6H7.3Zm0 13.4h1.4V16H7.3ZM0 7.3h2.6v1.4H0Zm13.4 0H16v1.4h-2.6Z',
  dark: 'M6 1.2A7 7 0 1 0 14.8 10 6 6 0 0 1 6 1.2Z',
} as const
type Theme = keyof typeof THEMES
const THEME_NAMES = Object.keys(THEMES) as Theme[]
const THEME_KEY = 'hookline-theme'
const prefersDark = matchMedia('(prefers-color-scheme: dark)')

function ThemeSwitch() {
  const [theme, setTheme] = useState(readTheme)
  const next = THEME_NAMES[(THEME_NAMES.indexOf(theme) + 1) % THEME_NAMES.length] ?? 'system'
  const change = (): void => {
    try {
      localStorage.setItem(THEME_KEY, next)
    } catch {
      // The browser does not allow storage, so the theme lasts only as long as the page is open.
    }
    setTheme(next)
    applyTheme(next)
  }
  return (
    <button type="button" class="quiet" onClick={change} title={`Theme: ${theme}. Change to ${next}.`}>
      <span class="unseen">Theme: </span>
      <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={THEMES[theme]} />
      </svg>
      <span class="wide">{theme}</span>
    </button>
  )
}

function readTheme(): Theme {
  try {
    return THEME_NAMES.find((theme) => theme === localStorage.getItem(THEME_KEY)) ?? 'system'
  } catch {
    return 'system'
  }
}

function applyTheme(theme: Theme): void {
  const isDark = theme === 'dark' || (theme === 'system' && prefersDark.matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
}

applyTheme(readTheme())
prefersDark.addEventListener('change', () => applyTheme(readTheme()))
startKeys()
void connect() // The returned promise never settles. `connect` itself reports a lost connection.
render(<Page />, document.querySelector('#page') as Element)
