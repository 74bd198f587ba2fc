/** Runs one contender in a process of its own: `program.ts <URL of its file> <arguments as JSON> [checkout whose build it takes]`. */

import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { OpenContender } from './contender.ts'
import { beginTurn, type Turn } from './turn.ts'

/** What a program can be told. */
export type Order =
  /** To run so many messages. Answers the turn. */
  | { readonly turn: number }
  /** That so many messages come from elsewhere. Answers when it is ready for them. */
  | { readonly begin: number }
  /** That they came. Answers the turn. */
  | { readonly end: true }

const [file = '', args = '[]', checkout] = process.argv.slice(2)
if (checkout !== undefined) loadFrom(checkout)

const { openContender }: { openContender: OpenContender } = await import(file)
const contender = await openContender(...JSON.parse(args))
let end: () => Promise<Turn>
let messages = 0

process.on('message', async (order: Order) => process.send?.(await obey(order)))
process.on('disconnect', () => process.exit())
process.send?.(contender.hello ?? 'ready')

async function obey(order: Order): Promise<Turn | 'ready'> {
  if ('begin' in order) {
    await begin(order.begin)
    return 'ready'
  }
  if ('turn' in order) {
    await begin(order.turn)
    await contender.run?.(order.turn)
  }
  await contender.settle?.()
  const turn = await end()
  await contender.restore?.(messages)
  return { ...turn, ...contender.figures?.() }
}

async function begin(count: number): Promise<void> {
  messages = count
  await contender.prepare?.(count)
  end = beginTurn(count)
}

/** Every import of the package takes the build of another checkout from here on. */
function loadFrom(folder: string): void {
  const parentURL = pathToFileURL(`${folder}/package.json`).href
  registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier, /^hookline(\/|$)/.test(specifier) ? { ...context, parentURL } : context),
  })
}
