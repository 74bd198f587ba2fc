/** Which view is shown: the hash of the URL, `#/messages/12?state=dead`. */

import { useEffect, useState } from 'preact/hooks'

/** The views by their names in the hash. */
export type View = 'messages' | 'queues' | 'dead-letters' | 'send' | 'development'

/** The hash of the URL, read. */
export interface Route {
  readonly view: View
  /** What is after the name of the view: the id of a message. */
  readonly rest: string
  readonly query: URLSearchParams
}

const VIEWS: readonly View[] = ['messages', 'queues', 'dead-letters', 'send', 'development']

/** Returns the route, and renders the component again when it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute)
  useEffect(() => {
    const onChange = (): void => setRoute(readRoute())
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return route
}

/** A link to a view: `hrefOf('messages', '12', query)`. */
export function hrefOf(view: View, rest = '', query?: URLSearchParams): string {
  const search = query?.toString() ?? ''
  return `#/${view}${rest === '' ? '' : `/${rest}`}${search === '' ? '' : `?${search}`}`
}

/** Goes to a link. `replace`: without a step back in the history. */
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
  return { view: VIEWS.find((view) => view === name) ?? 'messages', rest, query: new URLSearchParams(search) }
}
