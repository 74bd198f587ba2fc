/**
 * Runs every client against one collector, through all that can go wrong: the collector refuses each call at first, the receiver
 * answers 503, and the collector is killed and started again on the same file.
 */

import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createProject } from '../../package/project.ts'
import { until } from '../../support/until.ts'
import { Program } from './program.ts'
import { type Post, startReceiver } from './receiver.ts'
import { type Sent, startTap } from './tap.ts'

const SECRET = 'the secret that is shared'

const OURS = ['collector', 'hookline-client']

export interface Client {
  readonly program: string
  readonly refusals: number | null
  /** The calls that it makes, by type. */
  readonly calls: object
}

interface Seen {
  readonly printed: string
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
  const accepted = names.filter((name) => clients[name].refusals !== null)
  const [project, receiver, tap] = await Promise.all([createProject(), startReceiver(SECRET), startTap()])
  const started: Program[] = []
  const running: { readonly name: Name; readonly program: Program }[] = []

  function start(path: string, parameters: readonly string[]): Program {
    const program = new Program(path, parameters)
    started.push(program)
    return program
  }

  async function startCollector(): Promise<Program> {
    const refusals = JSON.stringify(Object.fromEntries(names.map((name) => [name, clients[name].refusals])))
    const file = join(project.directory, 'jobs.sqlite')
    const collector = start(join(project.directory, 'collector.mjs'), [file, receiver.url, SECRET, refusals])
    await until(() => collector.printed.includes('\n') || collector.hasFailed)
    tap.port = Number(collector.printed)
    return collector
  }

  const postsOf = (name: Name): Post[] => receiver.posts.filter(({ path }) => path === `/${name}`)

  /** Waits until all messages of all clients have been answered with the status. */
  const answered = (status: number): Promise<void> =>
    until(() => {
      for (const { name, program } of running) {
        if (program.hasFailed && accepted.includes(name)) throw new Error(`${name} failed: ${program.printed}`)
      }
      return accepted.every((name) => {
        const bodies = postsOf(name).flatMap((post) => (post.status === status ? [post.body] : []))
        return new Set(bodies).size === Object.keys(clients[name].calls).length
      })
    })

  try {
    for (const name of OURS) await cp(pathOf(name), join(project.directory, `${name}.mjs`))
    const collector = await startCollector()
    for (const name of names) {
      const { program, calls } = clients[name]
      const path = OURS.includes(program) ? join(project.directory, `${program}.mjs`) : pathOf(program)
      running.push({ name, program: start(path, [tap.url, `key-of-${name}`, JSON.stringify(calls)]) })
    }

    await answered(503)
    await until(() => tap.waiting === 0) // A message may be delivered before its call is answered.
    tap.port = undefined
    await collector.kill()
    receiver.status = 200
    await startCollector()
    await answered(200)

    const seen = running.map(async ({ name, program }): Promise<[Name, Seen]> => {
      const code = await program.end()
      const sent = tap.sent.filter((request) => readKey(request) === `key-of-${name}`)
      return [name, { printed: program.printed, code, sent, posts: postsOf(name) }]
    })
    return {
      clients: Object.fromEntries(await Promise.all(seen)) as Record<Name, Seen>,
      preflights: tap.sent.filter(({ method }) => method === 'OPTIONS'),
    }
  } finally {
    await Promise.all(started.map((program) => program.kill()))
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
