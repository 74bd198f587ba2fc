/** What differs between a message and another that is kept. */

import { useEffect, useState } from 'preact/hooks'
import type { Detail, Row } from '../../wire.ts'
import { get, useStore } from '../connection.ts'
import { formatCount } from '../format.ts'
import { Failure } from '../parts.tsx'
import { Text } from '../text.tsx'
import { type Difference, findDifferences } from './difference.ts'
import { excerptOf, type Json, parseJson } from './json.ts'

const MOST = 500

/** Shows what differs: from the previous message of the same event, unless the reader names another. */
export function Compare({ row, json }: { readonly row: Row; readonly json: Json }) {
  const previous = useStore((state) => state.rows.find((other) => isPrevious(other, row))?.id)
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const value = chosen ?? (previous === undefined ? '' : String(previous))
  const [found, setFound] = useState<readonly Difference[] | undefined>(undefined)
  const [problem, setProblem] = useState<string | undefined>(undefined)

  useEffect(() => {
    setFound(undefined)
    setProblem(undefined)
    if (!/^\d+$/.test(value)) return
    let isOver = false
    const load = async (): Promise<void> => {
      const { body } = await get<Detail>('message', { id: value })
      if (isOver) return
      if (body.text === undefined) throw new Error(`The body of message ${value} was not kept, or is no text.`)
      setFound(findDifferences(parseJson(body.text), json, MOST))
    }
    load().catch((error: Error) => {
      if (!isOver) setProblem(error instanceof SyntaxError ? `The body of message ${value} is no JSON.` : error.message)
    })
    return () => {
      isOver = true
    }
  }, [value, json])

  return (
    <div class="compare">
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
            Previous of the same event
          </button>
        )}
        {found !== undefined && <output class="muted">{summaryOf(found)}</output>}
      </p>
      {value === '' && <p class="muted">No earlier message of the same event is kept. Enter the number of another.</p>}
      {problem !== undefined && <Failure>{problem}</Failure>}
      {found !== undefined && found.length > 0 && <Differences found={found} from={value} to={String(row.id)} />}
    </div>
  )
}

interface DifferencesProps {
  readonly found: readonly Difference[]
  readonly from: string
  readonly to: string
}

function Differences({ found, from, to }: DifferencesProps) {
  return (
    <table class="differences">
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Message {from}</th>
          <th scope="col">This one, {to}</th>
        </tr>
      </thead>
      <tbody>
        {found.map(({ path, left, right }) => (
          <tr key={path}>
            <th scope="row" class="mono">
              <Text value={path === '' ? '(the body)' : path} />
            </th>
            <td class={`mono ${left && 'removed'}`}>{left ? <Text value={excerptOf(left, 200)} /> : 'none'}</td>
            <td class={`mono ${right && 'added'}`}>{right ? <Text value={excerptOf(right, 200)} /> : 'none'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function summaryOf({ length }: readonly Difference[]): string {
  if (length === 0) return 'The same fields and values.'
  return length < MOST ? formatCount(length, 'difference') : `The first ${MOST} differences`
}

function isPrevious(other: Row, row: Row): boolean {
  return other.id < row.id && other.type === row.type && other.name === row.name && other.part === row.part
}
