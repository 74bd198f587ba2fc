/**
 * Follows a guide word for word, in an empty folder, with the packed tarball in the place of the published package: saves the files that
 * it names, runs the commands that it gives, and looks for what it shows as their output.
 *
 * A guide names a file as `[app.mjs]` behind the language of a block, or by "save this as `app.mjs`"; it gives commands in `sh` blocks, and by
 * "run `…`", "start it with `…`" and "start it again with `…`" before a block. `text` is what one of the terminals shows. "The answer is `…`" and
 * "exit code 1", beside a block, say how it ends. Code for which a guide names no file is only read.
 */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { freePort, isOpen } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { applyDiff, type Block, extractBlocks } from './blocks.ts'
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
    for (const [index, block] of blocks.entries()) {
      await followBlock(block, textBefore(index), textBefore(index + 1)).catch(({ message }: Error) => {
        throw new Error(`${block.place}: ${message}`)
      })
    }
  } finally {
    for (const server of servers.values()) server.kill('SIGKILL')
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
  async function followBlock({ language, code, file }: Block, before: string[], after: string[]): Promise<void> {
    const text = before.join(' ')
    const outcome = `${before.at(-1)} ${after[0]}`
    const saved = file ?? /\bsave (?:this|it) as `([^`]+)`/i.exec(text)?.[1]
    if (language === 'diff' || (saved !== undefined && !/^(sh|text)$/.test(language))) {
      const path = join(folder, saved ?? 'a diff without the name of its file')
      await writeFile(path, language === 'diff' ? applyDiff(await readFile(path, 'utf8'), code) : code)
    }

    const given = [...text.matchAll(/\b(?:run|start it(?: again)? with) `([^`]+)`/gi)]
    for (const [, command = ''] of given) await runCommand(command)
    if (language === 'text') await expectOutput(code)
    if (language !== 'sh') return
    await runCommand(code.trim(), Number(/\bexit code (\d+)/.exec(outcome)?.[1] ?? 0))
    await expectOutput(/\banswer is `([^`]+)`/.exec(outcome)?.[1] ?? '')
  }

  /** Runs it to its end, or until it listens on a port: then it goes on until the end of the guide. */
  async function runCommand(command: string, status = 0): Promise<void> {
    await stop(servers.get(command)) // Ctrl-C, and the same line again.
    const closed = await portsThat(false)
    const installed = command.replaceAll(/^(npm install\b.*? )hookline(?= |$)/gm, `$1${tarball}`)
    const script = [...exported, installed].join('\n')
    const child = startProgram('bash', ['-ec', script], { cwd: folder, env: ENV, group: true })
    latest = child
    let ended: number | null | undefined
    void child.exit.then((code) => (ended = code))
    const listens = async () => (await portsThat(true)).some((port) => closed.includes(port))
    await until(async () => ended !== undefined || (await listens()), COMMAND_LIMIT_MS).catch(() => stop(child))
    if (ended === undefined) {
      if (!servers.has(command)) exported.length = 0 // The next command is typed in another terminal.
      servers.set(command, child)
    } else if (ended !== status) {
      throw new Error(`ended with ${ended}, not ${status}: ${command}\n${child.output}`)
    } else {
      exported.push(...(command.match(/^export .*$/gm) ?? []))
    }
  }

  async function portsThat(open: boolean): Promise<number[]> {
    const states = await Promise.all(ports.map(isOpen))
    return ports.filter((_, index) => states[index] === open)
  }

  /** `…` in what a guide shows stands for anything. */
  async function expectOutput(shown: string): Promise<void> {
    const parts = shown.trim().split('…')
    const pattern = new RegExp(parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('[^]*?'))
    const children = new Set([latest, ...servers.values()])
    const outputs = () => [...children].map((child) => child?.output.replaceAll('\r', '') ?? '')
    await until(() => outputs().some((output) => pattern.test(output)), OUTPUT_LIMIT_MS).catch(() => {
      throw new Error(`the guide shows\n${shown}\nand this was printed:\n${outputs().join('\n')}`)
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

async function stop(child: Child | undefined): Promise<void> {
  child?.kill('SIGINT')
  await child?.exit
}

function lineOf({ place }: Block): number {
  return Number(place.split(':').at(-1))
}
