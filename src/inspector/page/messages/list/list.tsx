/** The list of messages: only the rows that are seen are in the document. */

import type { RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Row } from '../../../wire.ts'
import { COLUMNS, elementId, RowLine } from './row.tsx'

const WIDE_PX = 900
const ROW_PX = { wide: 30, narrow: 50 }
/** Rows above and below what is seen. */
const SPARE = 8

interface ListProps {
  /** The newest first. */
  readonly rows: readonly Row[]
  readonly activeId: number | undefined
  readonly onOpen: (row: Row) => void
  readonly listRef: RefObject<HTMLDivElement>
}

/** Draws the list. */
export function List({ rows, activeId, onOpen, listRef }: ListProps) {
  const [{ width, height }, setSize] = useState({ width: 1_000, height: 0 })
  const [top, setTop] = useState(0)
  const isWide = width >= WIDE_PX
  const rowPx = isWide ? ROW_PX.wide : ROW_PX.narrow

  useLayoutEffect(() => {
    const list = listRef.current
    if (list === null) return
    const measure = (): void => setSize({ width: list.clientWidth, height: list.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(list)
    measure()
    return () => observer.disconnect()
  }, [listRef])

  // New rows come above: what is read stays where it is, unless it is the top.
  const anchor = useRef<{ readonly id: number; readonly offset: number } | undefined>(undefined)
  useLayoutEffect(() => {
    const list = listRef.current
    if (list === null || anchor.current === undefined) return
    const wanted = indexOf(rows, anchor.current.id) * rowPx + anchor.current.offset
    if (Math.abs(list.scrollTop - wanted) >= 1) list.scrollTop = wanted
    setTop(list.scrollTop)
  }, [rows, rowPx, listRef])
  const onScroll = (list: HTMLDivElement): void => {
    const first = rows[Math.floor(list.scrollTop / rowPx)]
    anchor.current =
      first === undefined || list.scrollTop < rowPx
        ? undefined
        : { id: first.id, offset: list.scrollTop - Math.floor(list.scrollTop / rowPx) * rowPx }
    setTop(list.scrollTop)
  }

  const activeIndex = activeId === undefined ? -1 : rows.findIndex(({ id }) => id === activeId)
  const latest = useRef({ activeIndex, rowPx })
  latest.current = { activeIndex, rowPx }
  useLayoutEffect(() => {
    const list = listRef.current
    const { activeIndex, rowPx } = latest.current
    if (list === null || activeIndex === -1) return
    const at = activeIndex * rowPx
    if (at < list.scrollTop) list.scrollTop = at
    if (at + rowPx > list.scrollTop + list.clientHeight) list.scrollTop = at + rowPx - list.clientHeight
  }, [activeId])

  const slots = Math.ceil(height / rowPx) + 1 + 2 * SPARE
  const first = Math.floor(top / rowPx) - SPARE
  const indexes = Array.from({ length: slots }, (_, slot) => first + slot).filter((index) => rows[index] !== undefined)
  // The active one stays in the document: assistive technology reads it.
  const isApart = activeIndex !== -1 && !indexes.includes(activeIndex)
  const active = rows[activeIndex]

  return (
    <div class={`list ${isWide ? 'is-wide' : ''}`}>
      {isWide && (
        <div class="message-row columns" aria-hidden="true">
          {COLUMNS.map((name) => (
            <span key={name} class={NUMBERS.has(name) ? 'number' : ''}>
              {name}
            </span>
          ))}
        </div>
      )}
      <div
        ref={listRef}
        class="rows"
        role="listbox"
        aria-label="Messages, the newest first"
        tabIndex={0}
        aria-activedescendant={active && elementId(active)}
        onScroll={({ currentTarget }) => onScroll(currentTarget)}
      >
        <div class="rows-height" role="presentation" style={{ height: `${rows.length * rowPx}px` }}>
          {[...indexes, ...(isApart ? [activeIndex] : [])].map((index, place) => {
            const row = rows[index] as Row
            return (
              <RowLine
                // Not of the message: the elements of rows that have gone are used again.
                key={place < indexes.length ? index % slots : 'active'}
                row={row}
                isWide={isWide}
                index={index}
                count={rows.length}
                top={index * rowPx}
                isActive={row.id === activeId}
                onOpen={onOpen}
              />
            )
          })}
        </div>
      </div>
      {top >= rowPx && (
        <button type="button" class="newest" onClick={() => listRef.current?.scrollTo({ top: 0 })}>
          ↑ Newest
        </button>
      )}
    </div>
  )
}

const NUMBERS = new Set(['Attempts', 'Retry', 'Took'])

/** Where a row is, or would be: the rows are sorted, the newest first. */
function indexOf(rows: readonly Row[], id: number): number {
  let [low, high] = [0, rows.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rows[middle] as Row).id > id) low = middle + 1
    else high = middle
  }
  return low
}
