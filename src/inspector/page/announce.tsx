/** Says short things to screen readers: `Copied`. */

import { useEffect, useState } from 'preact/hooks'

let say: (text: string) => void = () => {}

/** Announces a text politely. The same text again is announced again. */
export function announce(text: string): void {
  say(text)
}

/** The live region. The shell holds one. */
export function Announcer() {
  const [{ text, count }, setSaid] = useState({ text: '', count: 0 })
  useEffect(() => {
    say = (next) => setSaid((said) => ({ text: next, count: said.count + 1 }))
  }, [])
  return (
    <div class="unseen" role="status" aria-live="polite">
      {text}
      {count % 2 === 1 ? '\u00a0' : ''}
    </div>
  )
}
