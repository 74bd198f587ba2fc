/**
 * Follows a guide word for word, in an empty folder, with the packed tarball in the place of the published package: saves the files that
 * it names, runs the commands that it gives, and looks for what it shows as their output. Code for which the guide names no file is only read.
 */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { freePort } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { type Block, extractBlocks } from './blocks.ts'
import { type Child, startProgram } from './child.ts'

/** A command may install packages. */
const COMMAND_LIMIT_MS = 180_000

/** What a server prints of a request may come after the answer. */
const OUTPUT_LIMIT_MS = 5_000

const ENV = {
  HOOKLINE_SECRET: undefined,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_yes: 'false', // npx runs what is installed, and fetches nothing.
}

/**
 * @param tarball Its path.
 * @throws Error (as a rejection) that names the first block that does not do what the guide says.
 */
export async function follow(name: string, markdown: string, tarball: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hookline-guide-'))
  const { guide, ports } = await withFreePorts(markdown)
  const lines = guide.split('\n')
  const blocks = extractBlocks(name, guide)
  const servers = new Map<string, Child>()
  const exported: string[] = []
  let latest: Child | undefined

  try {
    for (const [index, block] of blocks.entries()) await followBlock(block, textBefore(index), textBefore(index + 1))
  } finally {
    for (const server of servers.values()) await stop(server)
    await rm(folder, { recursive: true, force: true })
  }

  /** The paragraphs between a block and the one before it. */
  function textBefore(index: number): string[] {
    const [previous, next] = [blocks[index - 1], blocks[index]]
    const start = previous === undefined ? 0 : lineOf(previous) + previous.code.split('\n').length
    const text = lines.slice(start, next === undefined ? undefined : lineOf(next) - 1).join('\n')
    return text
      .trim()
      .split(/\n{2,}/)
      .map((paragraph) => paragraph.replaceAll('\n', ' '))
  }

  /** The text before a block says where to save it, and what to run first. */
  async function followBlock({ place, language, code, file }: Block, before: string[], after: string[]): Promise<void> {
    const text = before.join(' ')
    const outcome = `${before.at(-1)} ${after[0]}`
    const path = file ?? /\bsave (?:this|it) as `([^`]+)`/i.exec(text)?.[1]
    if (language === 'diff') await change(join(folder, path ?? ''), code, place)
    else if (!/^(sh|text)$/.test(language) && path !== undefined) await writeFile(join(folder, path), code)

    const commands = [...text.matchAll(/\b(?:run|start it(?: again)? with) `([^`]+)`/gi)].map(
      ([, command = '']) => command,
    )
    if (language === 'sh') commands.push(code)
    const status = Number(/\bexit code (\d+)/.exec(outcome)?.[1] ?? 0)
    for (const command of commands) await runCommand(place, command.trim(), status)

    if (language === 'text') await expectOutput(place, code)
    const answer = language === 'sh' ? /\banswer is `([^`]+)`/.exec(outcome)?.[1] : undefined
    if (answer !== undefined) await expectOutput(place, answer)
  }

  /** Runs it to its end, or until it listens on a port: then it goes on until the end of the guide. */
  async function runCommand(place: string, command: string, status: number): Promise<void> {
    await stop(servers.get(command)) // Ctrl-C, and the same line again.
    const closed = await portsThat(false)
    const installed = command.replaceAll(/^(npm install\b.*? )hookline(?= |$)/gm, `$1${tarball}`)
    const child = startProgram('bash', ['-ec', [...exported, installed].join('\n')], {
      cwd: folder,
      env: ENV,
      group: true,
    })
    latest = child
    let ended: number | null | undefined
    void child.exit.then((code) => (ended = code))
    const listens = async () => (await portsThat(true)).some((port) => closed.includes(port))
    await until(async () => ended !== undefined || (await listens()), COMMAND_LIMIT_MS).catch(() => stop(child))
    if (ended === undefined) {
      if (!servers.has(command)) exported.length = 0 // The next command is typed in another terminal.
      servers.set(command, child)
    } else if (ended !== status) {
      throw new Error(`${place}: ended with ${ended}, not ${status}: ${command}\n${child.output}`)
    } else {
      exported.push(...(command.match(/^export .*$/gm) ?? []))
    }
  }

  async function portsThat(open: boolean): Promise<number[]> {
    const states = await Promise.all(ports.map(isOpen))
    return ports.filter((_, index) => states[index] === open)
  }

  /** `…` in what a guide shows stands for anything. */
  async function expectOutput(place: string, shown: string): Promise<void> {
    const pattern = new RegExp(
      shown
        .trim()
        .replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
        .replaceAll('…', '[^]*?'),
    )
    const outputs = () =>
      [...new Set([latest, ...servers.values()])].map((child) => child?.output.replaceAll('\r', '') ?? '')
    await until(() => outputs().some((output) => pattern.test(output)), OUTPUT_LIMIT_MS).catch(() => {
      throw new Error(`${place}: the guide shows\n${shown}\nand this was printed:\n${outputs().join('\n')}`)
    })
  }
}

/** The ports that a guide names may be taken on the machine of the test. */
async function withFreePorts(markdown: string): Promise<{ guide: string; ports: readonly number[] }> {
  const free = new Map<string, number>()
  for (const [port] of markdown.matchAll(/(?<=listen\(|localhost:|127\.0\.0\.1:|--port )\d{4,5}\b/g)) {
    if (!free.has(port)) free.set(port, await freePort())
  }
  const guide = markdown.replaceAll(/\b\d{4,5}\b/g, (number) => String(free.get(number) ?? number))
  return { guide, ports: [...free.values()] }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, 'localhost')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

async function stop(child: Child | undefined): Promise<void> {
  child?.kill('SIGINT')
  await child?.exit
}

function lineOf({ place }: Block): number {
  return Number(place.split(':').at(-1))
}

/** Changes the one place of a file that has the lines that a diff keeps and removes. */
async function change(path: string, diff: string, place: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  const lines = diff.trimEnd().split('\n')
  const without = (sign: string) =>
    lines
      .filter((line) => !line.startsWith(sign))
      .map((line) => line.slice(1))
      .join('\n')
  const parts = text.split(without('+'))
  if (parts.length !== 2) throw new Error(`${place}: the diff fits ${parts.length - 1} places of ${path}`)
  await writeFile(path, parts.join(without('-')))
}
