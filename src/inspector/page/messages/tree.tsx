/** JSON as a tree. A branch is built when it is opened. */

import { useState } from 'preact/hooks'
import { Text } from '../text.tsx'
import { childrenOf, excerptOf, type Json, sizeOf } from './json.ts'

/** How many values of an object or an array are shown at first, and added each time. */
const PAGE = 100
/** Characters of a string or a number. */
const STRING_PAGE = 2_000
/** Characters of a name: the text of the body has all of them. */
const NAME_LENGTH = 300
/** Levels that are indented. */
const INDENTED = 16

/** Shows JSON as a tree. */
export function Tree({ json }: { readonly json: Json }) {
  return (
    <ul class="tree">
      <Branch json={json} depth={0} />
    </ul>
  )
}

interface BranchProps {
  readonly name?: string | number
  readonly json: Json
  readonly depth: number
}

function Branch({ name, json, depth }: BranchProps) {
  const size = sizeOf(json)
  const [isOpen, setIsOpen] = useState(depth === 0 || (depth < 4 && size <= 20))
  const [shown, setShown] = useState(PAGE)
  if (size === 0) {
    return (
      <li>
        <Name name={name} />
        <Leaf json={json} />
      </li>
    )
  }
  const [first, last] = json.kind === 'object' ? ['{', '}'] : ['[', ']']
  const children = isOpen ? childrenOf(json).slice(0, shown) : []
  return (
    <li>
      <button type="button" class="branch" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        <Name name={name} />
        {isOpen ? first : <Closed json={json} />}
        <span class="muted"> {size}</span>
      </button>
      {isOpen && (
        <>
          <ul class={depth < INDENTED ? 'indented' : ''}>
            {children.map(({ key, value }, index) => (
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
          {last}
        </>
      )}
    </li>
  )
}

function Name({ name }: { readonly name: string | number | undefined }) {
  if (name === undefined) return null
  return (
    <>
      <span class={typeof name === 'number' ? 'muted' : 'key'}>
        <Text value={nameOf(name)} />
      </span>
      <span class="muted">: </span>
    </>
  )
}

function nameOf(name: string | number): string {
  const text = String(name)
  return text.length > NAME_LENGTH ? `${text.slice(0, NAME_LENGTH)}… ${text.length - NAME_LENGTH} more` : text
}

function Closed({ json }: { readonly json: Json }) {
  return (
    <span class="muted">
      <Text value={excerptOf(json, 60)} />
    </span>
  )
}

function Leaf({ json }: { readonly json: Json }) {
  const [shown, setShown] = useState(STRING_PAGE)
  if (json.kind === 'object') return <>{'{}'}</>
  if (json.kind === 'array') return <>[]</>
  if (json.kind === 'literal') {
    const text = json.text.length > STRING_PAGE ? `${json.text.slice(0, STRING_PAGE)}…` : json.text
    return <span class={/^[-\d]/.test(text) ? 'literal-number' : 'literal-word'}>{text}</span>
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
