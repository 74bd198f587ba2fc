/** A logger that keeps its lines. */

import type { Logger } from '../../src/kit/log.ts'

type Fields = Readonly<Record<string, unknown>>

export function keepLines() {
  const lines: (readonly [level: string, fields: Fields, text: string])[] = []
  const keep = (level: string) => (fields: object, text: string) => void lines.push([level, fields as Fields, text])
  const logger: Logger = { error: keep('error'), warn: keep('warn'), info: keep('info') }
  return {
    logger,
    lines,
    fields: () => lines.map(([, fields]) => fields),
    texts: () => lines.map(([, , text]) => text),
  }
}
