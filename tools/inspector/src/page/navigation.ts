/** The route and the keys of the page. The hash of the URL contains the route: `#/messages/12?state=dead`. */

import { useEffect, useRef, useState } from 'preact/hooks'

/** The titles of the views, keyed by their names in the hash. */
export const VIEWS = {
  messages: 'Messages',
  events: 'Events',
  queues: 'Queues',
  'dead-letters': 'Dead letters',
  history: 'History',
} as const

export type View = keyof typeof VIEWS

export interface Route {
  readonly view: View
  /** The decoded text after the name of the view: the id of a message, or the name of a part such as a receiver. */
  readonly rest: string
  readonly query: URLSearchParams
}

/** Returns the current route. The component is rendered again when the route changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute)
  useEffect(() => {
    const onChange = (): void => setRoute(readRoute())
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return route
}

/** Returns a link to a view: `hrefOf('messages', '12', query)`. */
export function hrefOf(view: View, rest = '', query?: URLSearchParams): string {
  const search = query?.toString() ?? ''
  return `#/${view}${rest === '' ? '' : `/${encodeURIComponent(rest)}`}${search === '' ? '' : `?${search}`}`
}

/** Goes to a link. If `replace` is true, adds no entry to the browser's history. */
export function goTo(href: string, replace = false): void {
  if (href === location.hash) return
  if (!replace) {
    location.hash = href
    return
  }
  history.replaceState(null, '', href)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

function readRoute(): Route {
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?', 2)
  const [name = '', rest = ''] = path.split('/', 2)
  const view = Object.hasOwn(VIEWS, name) ? (name as View) : 'messages'
  return { view, rest: decode(rest), query: new URLSearchParams(search) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // The text is not validly encoded. A user may have edited the URL.
  }
}

/** Actions, keyed by `event.key` or by a sequence such as `g m`. An action returns false to leave the key to other bindings. */
export type Keys = Readonly<Record<string, () => unknown>>

const bindings: (() => Keys)[] = []
let prefix = ''

/** Binds keys while the component is shown, except in text fields. The latest binding takes precedence. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    const currentKeys = (): Keys => latest.current
    bindings.unshift(currentKeys)
    return () => void bindings.splice(bindings.indexOf(currentKeys), 1)
  }, [])
}

const TYPED = 'input:not([type=checkbox], [type=radio]), textarea, select'
const PRESSED = 'a, button, summary, input'

export function startKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return
    const { key } = event
    const target = event.target instanceof Element ? event.target : document.body
    if (target.closest('dialog') || (target.matches(TYPED) && key !== 'Escape')) return
    if ((key === 'Enter' || key === ' ') && target.closest(PRESSED)) return
    const name = prefix === '' ? key : `${prefix} ${key}`
    prefix = ''
    for (const read of [...bindings]) {
      const action = read()[name]
      if (action === undefined || action() === false) continue
      event.preventDefault()
      return
    }
    if (bindings.some((read) => Object.keys(read()).some((each) => each.startsWith(`${key} `)))) prefix = key
  })
}
