/** Shows the body of a message as a tree, as text, as bytes, or as differences from another body. */

import { useMemo, useState } from 'preact/hooks'
import type { Detail, Row } from '../wire.ts'
import { endOfPiece } from './codes.ts'
import { bytesOf } from './copy.ts'
import { formatBytes, formatCount } from './format.ts'
import { childrenOf, excerptOf, findDifferences, type Json, parseJson, sizeOf } from './json.ts'
import { Empty, Failure, Text } from './parts.tsx'
import { useAnswer, useStore } from './store.ts'

const TABS = { tree: 'Tree', text: 'Text', bytes: 'Bytes', difference: 'Difference' }
type Tab = keyof typeof TABS

export function BodyView({ detail: { body, row } }: { readonly detail: Detail }) {
  const { json, problem } = useMemo(() => parseText(body.text), [body.text])
  const [chosen, setChosen] = useState<Tab>('tree')
  const bytes = useMemo(() => bytesOf(body), [body])
  if (bytes === undefined || bytes.length === 0) {
    return <Empty>{body.size > 0 ? `The body of ${formatBytes(body.size)} was not kept.` : 'The body is empty.'}</Empty>
  }
  const tabs = (Object.keys(TABS) as Tab[]).filter((tab) => {
    return tab === 'bytes' || (tab === 'text' ? body.text !== undefined : json !== undefined)
  })
  const tab = tabs.includes(chosen) ? chosen : (tabs[0] ?? 'bytes')
  const step = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    const next = by && tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length]
    if (!next) return
    event.preventDefault()
    setChosen(next)
    document.getElementById(`tab-${next}`)?.focus()
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label="Show the body as">
        {tabs.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`tab-${each}`}
            aria-selected={each === tab}
            aria-controls="tab-panel"
            tabIndex={each === tab ? 0 : -1}
            onClick={() => setChosen(each)}
            onKeyDown={step}
          >
            {TABS[each]}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={-1}>
        {problem !== undefined && (
          <p class="muted">
            This is not JSON: <Text value={problem} />
          </p>
        )}
        {tab === 'tree' && json !== undefined && (
          <ul class="tree">
            <Branch json={json} depth={0} />
          </ul>
        )}
        {tab === 'text' && <Whole text={body.text ?? ''} />}
        {tab === 'bytes' && <Bytes bytes={bytes} />}
        {tab === 'difference' && json !== undefined && <Compare row={row} json={json} />}
      </div>
    </>
  )
}

function parseText(text: string | undefined): { readonly json?: Json; readonly problem?: string } {
  try {
    return text === undefined ? {} : { json: parseJson(text) }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

const PAGE = 100
const STRING_PAGE = 2_000
const NAME_LENGTH = 300
const INDENTED = 16

interface BranchProps {
  readonly name?: string | number
  readonly json: Json
  readonly depth: number
}

/** Shows JSON as a tree. The children of a branch are rendered only while the branch is open. */
function Branch({ name, json, depth }: BranchProps) {
  const size = sizeOf(json)
  const [isOpen, setIsOpen] = useState(depth === 0 || (depth < 4 && size <= 20))
  const [shown, setShown] = useState(PAGE)
  const label = name !== undefined && (
    <>
      <span class={typeof name === 'number' ? 'muted' : 'key'}>
        <Text value={shorten(String(name))} />
      </span>
      <span class="muted">: </span>
    </>
  )
  if (size === 0) {
    return (
      <li>
        {label}
        <Leaf json={json} />
      </li>
    )
  }
  return (
    <li>
      <button type="button" class="branch" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {label}
        {isOpen && (json.kind === 'object' ? '{' : '[')}
        <span class="muted">
          {!isOpen && <Text value={excerptOf(json, 60)} />} {size}
        </span>
      </button>
      {isOpen && (
        <>
          <ul class={depth < INDENTED ? '' : 'flat'}>
            {childrenOf(json)
              .slice(0, shown)
              .map(({ key, value }, index) => (
                <Branch key={index} name={key} json={value} depth={depth + 1} />
              ))}
            {shown < size && (
              <li>
                <button type="button" class="quiet" onClick={() => setShown(shown + PAGE * 5)}>
                  Show more: {size - shown} left
                </button>
              </li>
            )}
          </ul>
          {json.kind === 'object' ? '}' : ']'}
        </>
      )}
    </li>
  )
}

function shorten(name: string): string {
  return name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH)}… ${name.length - NAME_LENGTH} more` : name
}

function Leaf({ json }: { readonly json: Json }) {
  const [shown, setShown] = useState(STRING_PAGE)
  if (json.kind !== 'string') {
    const text = excerptOf(json, STRING_PAGE)
    return <span class={json.kind === 'literal' ? (/^[-\d]/.test(text) ? 'digits' : 'word') : ''}>{text}</span>
  }
  const { value } = json
  return (
    <span class="string">
      "<Text value={value.slice(0, shown)} />
      {shown < value.length ? (
        <button type="button" class="quiet" onClick={() => setShown(shown + 5 * STRING_PAGE)}>
          … {value.length - shown} more characters
        </button>
      ) : (
        '"'
      )}
    </span>
  )
}

const TEXT_PAGE = 64 * 1024

/** Shows a long text piece by piece, because browsers are slow with long lines, many lines and many marks. */
function Whole({ text }: { readonly text: string }) {
  const [count, setCount] = useState(1)
  const { pieces, left } = useMemo(() => {
    const pieces: string[] = []
    let from = 0
    while (from < text.length && pieces.length < count) {
      const end = endOfPiece(text, from, TEXT_PAGE)
      pieces.push(text.slice(from, end))
      from = end
    }
    return { pieces, left: text.length - from }
  }, [text, count])
  return (
    <>
      <pre class="whole">
        {pieces.map((piece, index) => (
          <Text key={index} value={piece} lines />
        ))}
      </pre>
      <More left={left} onMore={() => setCount(count + 1)} />
    </>
  )
}

const BYTES_PAGE = 2 * 1024

function Bytes({ bytes }: { readonly bytes: Uint8Array }) {
  const [shown, setShown] = useState(BYTES_PAGE)
  const lines = useMemo(() => {
    const starts = Array.from({ length: Math.ceil(Math.min(shown, bytes.length) / 16) }, (_, line) => line * 16)
    return starts.map((start) => lineOf(start, [...bytes.subarray(start, start + 16)])).join('\n')
  }, [bytes, shown])
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, including by keyboard */}
      <pre class="bytes" tabIndex={0}>
        {lines}
      </pre>
      <More left={bytes.length - shown} onMore={() => setShown(shown + 16 * BYTES_PAGE)} />
    </>
  )
}

/** Formats a line of bytes: `000010  7b 22 …  {"…`. */
function lineOf(start: number, bytes: readonly number[]): string {
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
  const text = bytes.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('')
  return `${start.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${text}`
}

function More({ left, onMore }: { readonly left: number; readonly onMore: () => void }) {
  if (left <= 0) return null
  return (
    <button type="button" onClick={onMore}>
      Show more: {formatBytes(left)} left
    </button>
  )
}

const MAX_DIFFERENCES = 500

interface CompareProps {
  readonly row: Row
  readonly json: Json
}

/** Shows the differences from the previous message of the same event, or from a message that the user chooses. */
function Compare({ row, json }: CompareProps) {
  const previous = useStore((state) => state.rows.find((other) => isPrevious(other, row))?.id)
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const value = chosen ?? String(previous ?? '')
  const isId = /^\d+$/.test(value)
  const { answer, error } = useAnswer<Detail>(isId ? 'message' : undefined, { id: value })
  const other = isId && answer?.row.id === Number(value) ? answer.body : undefined
  const { found, problem } = useMemo(() => {
    const { json: left, problem } = parseText(other?.text)
    if (left !== undefined) return { found: findDifferences(left, json, MAX_DIFFERENCES) }
    if (other === undefined) return { problem: error }
    return { problem: problem === undefined ? 'was not kept, or is not text' : 'is not JSON' }
  }, [other, error, json])
  return (
    <div class="stack">
      <p class="row">
        <label>
          Message{' '}
          <input
            inputMode="numeric"
            size={8}
            value={value}
            onInput={({ currentTarget }) => setChosen(currentTarget.value.trim())}
          />
        </label>
        {previous !== undefined && value !== String(previous) && (
          <button type="button" onClick={() => setChosen(undefined)}>
            Previous message of the same event
          </button>
        )}
        {found !== undefined && (
          <output class="muted">
            {found.length === 0
              ? 'The same fields and values.'
              : `${found.length === MAX_DIFFERENCES ? 'The first ' : ''}${formatCount(found.length, 'difference')}`}
          </output>
        )}
      </p>
      {value === '' && (
        <p class="muted">No earlier message of the same event is kept. Enter the number of another message.</p>
      )}
      <Failure error={problem && other ? `The body of message ${value} ${problem}.` : problem} />
      {found !== undefined && found.length > 0 && (
        <table class="differences">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Message {value}</th>
              <th scope="col">This one, {row.id}</th>
            </tr>
          </thead>
          <tbody>
            {found.map(({ path, left, right }) => (
              <tr key={path} class="mono">
                <th scope="row">
                  <Text value={path || '(the body)'} />
                </th>
                <td class={left && 'removed'}>{left ? <Text value={excerptOf(left, 200)} /> : 'none'}</td>
                <td class={right && 'added'}>{right ? <Text value={excerptOf(right, 200)} /> : 'none'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  )
}

function isPrevious(other: Row, row: Row): boolean {
  return other.id < row.id && other.type === row.type && other.name === row.name && other.part === row.part
}
