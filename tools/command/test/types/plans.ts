/** Plans in each form that is kept in public, with messages that they accept and refuse. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Case {
  readonly plan: string
  readonly message: { readonly type: 'track' | 'identify' | 'group'; readonly event?: string }
  readonly passes: boolean
  readonly because: string
  /** The place of what no schema says. */
  readonly unsupported?: string
}

const folder: string = join(import.meta.dirname, 'plans')
const cases: Case[] = JSON.parse(readFileSync(join(folder, 'messages.json'), 'utf8'))

export const plans = [...Map.groupBy(cases, ({ plan }) => plan)].map(([name, cases]) => {
  return { name, cases, path: join(folder, name) }
})
