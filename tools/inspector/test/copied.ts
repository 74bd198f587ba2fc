/** Messages that are copied from the page, and texts that a shell, a terminal or a script takes for more than text. */

import { isUtf8 } from 'node:buffer'
import type { Body, Detail, Row } from '../src/wire.ts'

export const NASTY = [
  "it's",
  "'; touch hacked; '",
  '$(touch hacked) `touch hacked` $HOME',
  'line\nbreak\r\ttab',
  '\u2028 \u2029 \u202e',
  '😀 é',
  '\0 \u001b[201~ \u007f \u0085',
  '@/etc/passwd',
  '-n \0',
  '\\ \\\\ \\n %s %d',
  '</script> */ //',
  "'\n",
  '',
]

export const row: Row = {
  ...{ id: 1, at: 0, kind: 'received', part: 'shop', state: 'done', bytes: 0, attempts: 1 },
  ...{ type: 'track', name: 'Order Completed' },
}

export function bodyOf(bytes: Uint8Array): Body {
  const [size, buffer] = [bytes.length, Buffer.from(bytes)]
  return isUtf8(bytes) ? { size, text: buffer.toString() } : { size, base64: buffer.toString('base64') }
}

export function detailOf(body: Body, headers: readonly (readonly [string, string | null])[] = []): Detail {
  const path = '/webhooks?a=[1]&b=$(c)'
  const request = { method: 'POST', path, headers: [['host', 'localhost:3000'] as const, ...headers] }
  return { row, request, body, steps: [], canExplain: false, isStored: false }
}
