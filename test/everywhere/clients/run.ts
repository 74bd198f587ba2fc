/**
 * Runs every client against one collector, through all that can go wrong: the collector refuses each call at first, the receiver
 * answers 503, and the collector is killed and started again on the same file.
 */

import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Child, startNode } from '../../docs/child.ts'
import { createProject } from '../../package/project.ts'
import { until } from '../../support/until.ts'
import { type Post, startReceiver } from './receiver.ts'
import { type Sent, startTap } from './tap.ts'

const SECRET = 'the secret that is shared'

const OURS = ['collector', 'hookline-client']

export interface Client {
  /** How often the collector refuses each call. */
  readonly refusals: number
  /** The calls that it makes, by type. */
  readonly calls: object
  /** Whether it is a page, which stays until it is told to end. */
  readonly isPage?: boolean
}

interface Seen {
  readonly code: number | null
  readonly sent: readonly Sent[]
  readonly posts: readonly Post[]
}

export interface Run<Name extends string> {
  readonly clients: Readonly<Record<Name, Seen>>
  /** The requests of browsers that ask whether they may send a call. */
  readonly preflights: readonly Sent[]
}

/** Runs the clients at once. */
export async function runClients<Name extends string>(clients: Readonly<Record<Name, Client>>): Promise<Run<Name>> {
  const names = Object.keys(clients) as Name[]
  const [project, receiver, tap] = await Promise.all([createProject(), startReceiver(SECRET), startTap()])
  const started: Child[] = []
  const running = new Map<Name, Child>()
  let failure: Error | undefined

  function start(path: string, parameters: readonly string[]): Child {
    const child = startNode([path, ...parameters])
    started.push(child)
    return child
  }

  async function startCollector(): Promise<Child> {
    const refusals = JSON.stringify(Object.fromEntries(names.map((name) => [name, clients[name].refusals])))
    const file = join(project.directory, 'jobs.sqlite')
    const collector = start(join(project.directory, 'collector.mjs'), [file, receiver.url, SECRET, refusals])
    const [port] = await collector.printed(/^\d+$/m)
    tap.port = Number(port)
    return collector
  }

  const postsOf = (name: Name): Post[] => receiver.posts.filter(({ path }) => path === `/${name}`)

  /** Waits until all messages of all clients have been answered with the status. */
  const answered = (status: number): Promise<void> =>
    until(() => {
      if (failure !== undefined) throw failure
      return names.every((name) => {
        const bodies = postsOf(name).flatMap((post) => (post.status === status ? [post.body] : []))
        return new Set(bodies).size === Object.keys(clients[name].calls).length
      })
    })

  try {
    for (const name of OURS) await cp(pathOf(name), join(project.directory, `${name}.mjs`))
    const collector = await startCollector()
    for (const name of names) {
      const path = OURS.includes(name) ? join(project.directory, `${name}.mjs`) : pathOf(name)
      const child = start(path, [tap.url, `key-of-${name}`, JSON.stringify(clients[name].calls)])
      running.set(name, child)
      void child.exit.then((code) => {
        if (code !== 0) failure ??= new Error(`${name} failed: ${child.output}`)
      })
    }

    await answered(503)
    await until(() => tap.waiting === 0) // A message may be delivered before its call is answered.
    tap.port = undefined
    collector.kill('SIGKILL')
    await collector.exit
    receiver.status = 200
    await startCollector()
    await answered(200)

    const seen = [...running].map(async ([name, child]): Promise<[Name, Seen]> => {
      if (clients[name].isPage) child.kill('SIGTERM')
      const code = await child.exit
      return [
        name,
        { code, sent: tap.sent.filter((request) => readKey(request) === `key-of-${name}`), posts: postsOf(name) },
      ]
    })
    return {
      clients: Object.fromEntries(await Promise.all(seen)) as Record<Name, Seen>,
      preflights: tap.sent.filter(({ method }) => method === 'OPTIONS'),
    }
  } finally {
    for (const child of started) child.kill('SIGKILL')
    await Promise.all(started.map(({ exit }) => exit))
    receiver.close()
    tap.close()
    await project.remove()
  }
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(`programs/${program}.mjs`, import.meta.url))
}

/** The write key of a request: of its header, else of its body. */
function readKey({ headers, json }: Sent): unknown {
  const [, credentials] = (headers.authorization ?? '').split(' ')
  return credentials === undefined ? json.writeKey : Buffer.from(credentials, 'base64').toString().replace(/:$/, '')
}
