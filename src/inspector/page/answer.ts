/** Reads from the API for a component, once or again and again. */

import { useCallback, useEffect, useState } from 'preact/hooks'
import { get } from './connection.ts'

/** What is known of an answer. */
export interface Answered<Answer> {
  /** The latest; undefined until the first one. Of the query before, until that of a new one arrives. */
  readonly answer: Answer | undefined
  /** Why the latest request failed. */
  readonly error: string | undefined
  /** Asks again. */
  reload(): void
}

/**
 * Asks the API, and again when the query changes.
 *
 * @param path Below `api/`.
 * @param everyMs Asks again so often while the page is visible. Default: once.
 * @param cause Asks again when it changes.
 */
export function useAnswer<Answer>(
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  everyMs?: number,
  cause?: unknown,
): Answered<Answer> {
  const [state, setState] = useState<Pick<Answered<Answer>, 'answer' | 'error'>>({
    answer: undefined,
    error: undefined,
  })
  const [turn, setTurn] = useState(0)
  const key = JSON.stringify(query)
  useEffect(() => {
    let isCurrent = true
    let [asked, shown] = [0, 0]
    const ask = async (): Promise<void> => {
      if (document.hidden) return
      asked += 1
      const number = asked
      /** An answer that a later one has overtaken says nothing. */
      const show = (change: Partial<typeof state>): void => {
        if (!isCurrent || number < shown) return
        shown = number
        setState((before) => ({ ...before, ...change }))
      }
      try {
        show({ answer: await get<Answer>(path, JSON.parse(key)), error: undefined })
      } catch (error) {
        show({ error: (error as Error).message })
      }
    }
    void ask()
    const timer = everyMs === undefined ? undefined : window.setInterval(() => void ask(), everyMs)
    const onVisible = (): void => void ask()
    document.addEventListener('visibilitychange', onVisible)
    return () => {
      isCurrent = false
      window.clearInterval(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [path, key, everyMs, cause, turn])
  const reload = useCallback(() => setTurn((before) => before + 1), [])
  return { ...state, reload }
}
