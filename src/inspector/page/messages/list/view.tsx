/** The view "Messages": the list, and the message that is open. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Row } from '../../../wire.ts'
import { useStore } from '../../connection.ts'
import { useKeys } from '../../keys.ts'
import { goTo, hrefOf, useRoute } from '../../route.ts'
import { DetailView } from '../detail.tsx'
import { NoRows } from './empty.tsx'
import { filterOf } from './filter.ts'
import { Filters } from './filters.tsx'
import { List } from './list.tsx'
import '../messages.css'

/** Shows the list, and the message of the URL beside it. */
export function MessagesView() {
  const { rest, query } = useRoute()
  const live = useStore((state) => state.rows)
  const [frozen, setFrozen] = useState<readonly Row[] | undefined>(undefined)
  const all = frozen ?? live
  const search = query.toString()
  const passes = useMemo(() => filterOf(query), [search])
  const rows = useMemo(() => all.filter(passes), [all, passes])
  const newest = frozen?.[0]?.id ?? 0
  const fresh = frozen === undefined ? 0 : live.filter((row) => row.id > newest && passes(row)).length

  const openId = /^\d+$/.test(rest) ? Number(rest) : undefined
  const [chosenId, setChosenId] = useState<number | undefined>(undefined)
  const activeId = openId ?? chosenId
  const listRef = useRef<HTMLDivElement>(null)
  const searchRef = useRef<HTMLInputElement>(null)
  const headingRef = useRef<HTMLHeadingElement>(null)
  /** Whether the message was opened by a key, which takes the focus along. */
  const isEntered = useRef(false)
  const wasOpen = useRef(false)

  const open = (row: Row, isReplaced = false): void => {
    setChosenId(row.id)
    goTo(hrefOf('messages', String(row.id), query), isReplaced)
  }
  const choose = (row: Row): void => {
    isEntered.current = false
    open(row)
  }
  const close = (): void => {
    if (openId === undefined) return
    setChosenId(openId)
    goTo(hrefOf('messages', '', query))
  }
  useEffect(() => {
    // The message that was closed had the focus.
    if (openId === undefined && wasOpen.current && document.activeElement === document.body) {
      const target = listRef.current ?? searchRef.current
      target?.focus()
    }
    wasOpen.current = openId !== undefined
  }, [openId])
  const move = (by: number): unknown => {
    const index = rows.findIndex(({ id }) => id === activeId)
    const next = rows[Math.min(Math.max(0, index + by), rows.length - 1)]
    if (next === undefined) return false
    if (openId === undefined) setChosenId(next.id)
    else {
      isEntered.current = document.activeElement === headingRef.current
      open(next, true)
    }
    return undefined
  }
  /** Arrows scroll where the focus is, unless that is the list. */
  const moveInList = (by: number) => () => document.activeElement === listRef.current && move(by)
  const pause = (): void => setFrozen(frozen === undefined ? live : undefined)

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: moveInList(1),
    ArrowUp: moveInList(-1),
    PageDown: moveInList(10),
    PageUp: moveInList(-10),
    Home: moveInList(-rows.length),
    End: moveInList(rows.length),
    Enter: () => {
      const row = rows.find(({ id }) => id === activeId)
      if (row === undefined) return false
      isEntered.current = true
      if (openId === row.id) headingRef.current?.focus()
      else open(row)
      return undefined
    },
    Escape: () => {
      if (document.activeElement === searchRef.current) listRef.current?.focus()
      else close()
    },
    '/': () => searchRef.current?.focus(),
    p: pause,
  })

  return (
    <div class={`messages ${openId === undefined ? '' : 'is-open'}`}>
      <div class="messages-list">
        <h1 class="unseen">Messages</h1>
        <Filters
          query={query}
          onQuery={(next) => goTo(hrefOf('messages', rest, next), true)}
          searchRef={searchRef}
          all={all}
          shown={rows.length}
          isPaused={frozen !== undefined}
          fresh={fresh}
          onPause={pause}
        />
        {rows.length === 0 ? (
          <NoRows isFiltered={all.length > 0} onClear={() => goTo(hrefOf('messages', rest), true)} />
        ) : (
          <List rows={rows} activeId={activeId} onOpen={(row) => choose(row)} listRef={listRef} />
        )}
      </div>
      {openId !== undefined && (
        <DetailView key={openId} id={openId} headingRef={headingRef} isEntered={isEntered.current} onClose={close} />
      )}
    </div>
  )
}
