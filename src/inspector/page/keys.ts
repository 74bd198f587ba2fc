/** Keys that work wherever the focus is, except where it is typed. */

import { useEffect, useRef } from 'preact/hooks'

/** What keys do, by `event.key`; `g m` is one after the other. Return false to leave the key to others. */
export type Keys = Readonly<Record<string, () => unknown>>

const bindings: (() => Keys)[] = []
let prefix = ''

/** Binds keys while the component is shown. What was bound last comes first. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    const read = (): Keys => latest.current
    bindings.unshift(read)
    return () => {
      bindings.splice(bindings.indexOf(read), 1)
    }
  }, [])
}

/** Listens to the keys of the whole page. */
export function startKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return
    const { target, key } = event
    if (target instanceof Element && target.closest('dialog') !== null) return
    if (isTyped(target) && key !== 'Escape') return
    if (['Enter', ' '].includes(key) && isPressed(target)) return
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

function isTyped(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'submit'].includes(target.type)
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
}

function isPressed(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('a, button, summary, input') !== null
}
