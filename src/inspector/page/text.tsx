/** Text of strangers, so that all of it is seen and none of it moves what is beside it. */

import { splitText } from './codes.ts'

/**
 * Shows a text on its own: characters that are not seen, or that change the direction of others, are shown by their codes.
 *
 * @param lines Whether line breaks and tabs are kept.
 */
export function Text({ value, lines = false }: { readonly value: string; readonly lines?: boolean }) {
  return (
    <bdi>
      {splitText(value, lines).map((piece, index) =>
        typeof piece === 'string' ? (
          piece
        ) : (
          <span key={index} class="code">
            {piece.code}
          </span>
        ),
      )}
    </bdi>
  )
}
