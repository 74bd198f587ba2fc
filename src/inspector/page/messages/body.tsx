/** The body of a message: as a tree, as text, as bytes, and what differs from another. */

import { useMemo, useState } from 'preact/hooks'
import type { Detail } from '../../wire.ts'
import { endOfPiece } from '../codes.ts'
import { formatBytes } from '../format.ts'
import { Empty } from '../parts.tsx'
import { Text } from '../text.tsx'
import { Compare } from './compare.tsx'
import { bytesOf } from './copy.ts'
import { type Json, parseJson } from './json.ts'
import { Tree } from './tree.tsx'

const TABS = { tree: 'Tree', text: 'Text', bytes: 'Bytes', difference: 'Difference' }
type Tab = keyof typeof TABS

/** Shows the body of a message in tabs. */
export function BodyView({ detail }: { readonly detail: Detail }) {
  const { body } = detail
  const { json, problem } = useMemo(() => read(body.text), [body.text])
  const [chosen, setChosen] = useState<Tab>('tree')
  const bytes = useMemo(() => bytesOf(body), [body])
  if (bytes === undefined || bytes.length === 0) {
    return <Empty>{body.size > 0 ? `The body of ${formatBytes(body.size)} was not kept.` : 'The body is empty.'}</Empty>
  }
  const tabs = (Object.keys(TABS) as Tab[]).filter((tab) => {
    if (tab === 'text') return body.text !== undefined
    return tab === 'bytes' || json !== undefined
  })
  const tab = tabs.includes(chosen) ? chosen : (tabs[0] ?? 'bytes')
  return (
    <>
      <div class="tabs" role="tablist" aria-label="The body as">
        {tabs.map((each, index) => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`tab-${each}`}
            aria-selected={each === tab}
            aria-controls="tab-panel"
            tabIndex={each === tab ? 0 : -1}
            onClick={() => setChosen(each)}
            onKeyDown={(event) => {
              const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
              const next = by === undefined ? undefined : tabs[(index + by + tabs.length) % tabs.length]
              if (next === undefined) return
              event.preventDefault()
              setChosen(next)
              document.getElementById(`tab-${next}`)?.focus()
            }}
          >
            {TABS[each]}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={-1}>
        {body.text !== undefined && problem !== undefined && (
          <p class="muted">
            This is no JSON: <Text value={problem} />
          </p>
        )}
        {tab === 'tree' && json !== undefined && <Tree json={json} />}
        {tab === 'text' && <Whole text={body.text ?? ''} />}
        {tab === 'bytes' && <Bytes bytes={bytes} />}
        {tab === 'difference' && json !== undefined && <Compare row={detail.row} json={json} />}
      </div>
    </>
  )
}

function read(text: string | undefined): { readonly json?: Json; readonly problem?: string } {
  try {
    return text === undefined ? {} : { json: parseJson(text) }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

const TEXT_PAGE = 64 * 1024

/** All of it, a piece after the other: a browser is slow with a long line, many lines and many marks. */
function Whole({ text }: { readonly text: string }) {
  const [count, setCount] = useState(1)
  const { pieces, left } = useMemo(() => readPieces(text, count), [text, count])
  return (
    <>
      <pre class="whole">
        {pieces.map((piece, index) => (
          <Text key={index} value={piece} lines />
        ))}
      </pre>
      {left > 0 && (
        <button type="button" onClick={() => setCount(count + 1)}>
          Show more: {formatBytes(left)} left
        </button>
      )}
    </>
  )
}

function readPieces(text: string, count: number): { readonly pieces: readonly string[]; readonly left: number } {
  const pieces: string[] = []
  let from = 0
  while (from < text.length && pieces.length < count) {
    const end = endOfPiece(text, from, TEXT_PAGE)
    pieces.push(text.slice(from, end))
    from = end
  }
  return { pieces, left: text.length - from }
}

const BYTES_PAGE = 2 * 1024

function Bytes({ bytes }: { readonly bytes: Uint8Array }) {
  const [shown, setShown] = useState(BYTES_PAGE)
  const lines = useMemo(() => {
    const starts = Array.from({ length: Math.ceil(Math.min(shown, bytes.length) / 16) }, (_, line) => line * 16)
    return starts.map((start) => lineOf(start, bytes.subarray(start, start + 16))).join('\n')
  }, [bytes, shown])
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard */}
      <pre class="bytes" tabIndex={0}>
        {lines}
      </pre>
      {shown < bytes.length && (
        <button type="button" onClick={() => setShown(shown + 16 * BYTES_PAGE)}>
          Show more: {formatBytes(bytes.length - shown)} left
        </button>
      )}
    </>
  )
}

/** `00000010  7b 22 …  {"…`. */
function lineOf(start: number, bytes: Uint8Array): string {
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
  const text = [...bytes].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('')
  return `${start.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${text}`
}
