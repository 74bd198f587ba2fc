/** The list of keys, and the keys that work in every view. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { useKeys } from '../keys.ts'
import { goTo, hrefOf } from '../route.ts'

const KEYS: readonly (readonly [string, string])[] = [
  ['j, k or ↓, ↑', 'next and previous message'],
  ['Enter', 'open the message'],
  ['Escape', 'close it, or leave the search'],
  ['/', 'search'],
  ['p', 'pause and resume'],
  ['g m', 'messages'],
  ['g q', 'queues'],
  ['g d', 'dead letters'],
  ['g s', 'send'],
  ['g f', 'faults and time'],
  ['?', 'these keys'],
]

/** A button that shows the keys; so does `?`. */
export function KeysHelp() {
  const [isOpen, setIsOpen] = useState(false)
  const dialog = useRef<HTMLDialogElement>(null)
  useKeys({
    '?': () => setIsOpen(true),
    'g m': () => goTo(hrefOf('messages')),
    'g q': () => goTo(hrefOf('queues')),
    'g d': () => goTo(hrefOf('dead-letters')),
    'g s': () => goTo(hrefOf('send')),
    'g f': () => goTo(hrefOf('development')),
  })
  useEffect(() => {
    if (isOpen) dialog.current?.showModal()
  }, [isOpen])
  return (
    <>
      <button type="button" class="quiet" onClick={() => setIsOpen(true)} title="Keys: ?">
        <span aria-hidden="true">?</span>
        <span class="unseen">Keys</span>
      </button>
      {isOpen && (
        <dialog ref={dialog} class="keys" aria-labelledby="keys-title" onClose={() => setIsOpen(false)}>
          <h2 id="keys-title">Keys</h2>
          <dl>
            {KEYS.map(([keys, action]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{action}</dd>
              </div>
            ))}
          </dl>
          <button type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </dialog>
      )}
    </>
  )
}
