/** Copies a text. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { announce } from '../parts.tsx'

/** A button that copies. Where the browser has no clipboard for the page, it shows the text, selected. */
export function CopyButton({ label, text }: { readonly label: string; readonly text: () => string }) {
  const [isCopied, setIsCopied] = useState(false)
  const [shown, setShown] = useState<string | undefined>(undefined)
  const button = useRef<HTMLButtonElement>(null)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (!isCopied) return
    const timer = window.setTimeout(() => setIsCopied(false), 2_000)
    return () => window.clearTimeout(timer)
  }, [isCopied])
  useEffect(() => area.current?.select(), [shown])

  const copy = async (): Promise<void> => {
    const value = text()
    try {
      // Not there over plain HTTP from another host.
      await navigator.clipboard.writeText(value)
    } catch {
      setShown(value)
      announce('Copy the selected text')
      return
    }
    setIsCopied(true)
    announce('Copied')
  }
  return (
    <>
      <button ref={button} type="button" onClick={() => void copy()}>
        {isCopied ? 'Copied' : label}
      </button>
      {shown !== undefined && (
        <label class="to-copy">
          Copy this text
          <textarea
            ref={area}
            readOnly
            rows={6}
            value={shown}
            onBlur={() => setShown(undefined)}
            onKeyDown={(event) => {
              if (event.key !== 'Escape') return
              event.stopPropagation()
              button.current?.focus()
            }}
          />
        </label>
      )}
    </>
  )
}
