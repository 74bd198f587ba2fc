/** Every example of the help, and every block of the guides and the skill that runs the command. */

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { extractBlocks, kindOf, programsOf } from '../../../test/docs/blocks.ts'
import { needs } from '../../../test/support/needs.ts'
import { bin } from './command.ts'
import { prepareShell } from './shell.ts'

const root = new URL('../../../', import.meta.url)
const shell = await prepareShell()
afterAll(() => shell.close())

/** Runs of the command that end with another exit code than 0, as the text beside them says. */
const EXIT_CODES: readonly (readonly [line: string, code: number])[] = [['--tamper bad-signature', 1]]

const examples = findCommands([]).map((path) => ({ name: path.join(' '), examples: findExamples(path) }))
const guides = readdirSync(new URL('docs/', root), { encoding: 'utf8' }).map((name) => `docs/${name}`)
const pages = ['README.md', 'skills/hookline/SKILL.md', ...guides]
const blocks = pages
  .filter((name) => name.endsWith('.md'))
  .flatMap((name) => extractBlocks(name, readFileSync(new URL(name, root), 'utf8')))
  .filter((block) => kindOf(block) === 'command')

describe.each(examples)('hookline $name --help', ({ examples }) => {
  it('has two examples, which keep the secret out of the list of processes', () => {
    expect(examples.length).toBeGreaterThan(1)
    expect(examples.filter((line) => / --secret[ =]/.test(line))).toEqual([])
  })

  it.each(examples)('%s', needs('POSIX'), (line) => expectToRun(line))
})

describe('the guides', () => {
  for (const block of blocks) it(block.place, needs('POSIX', ...programsOf(block)), () => expectToRun(block.code))
})

it('the file that the guide of types shows is what the command writes', needs('POSIX'), async () => {
  const page = 'docs/typed-events.md'
  const guide = extractBlocks(page, readFileSync(new URL(page, root), 'utf8'))
  const { stdout } = await shell.run('npx hookline types .hookline/listen.sqlite')
  expect(guide.find(({ file }) => file === 'events.ts')?.code).toBe(stdout)
})

async function expectToRun(lines: string): Promise<void> {
  const { stdout, stderr, codes } = await shell.run(lines)
  const expected = [...lines.matchAll(/\bhookline .*/g)].map(
    ([run]) => EXIT_CODES.find(([line]) => run.includes(line))?.[1] ?? 0,
  )
  expect({ codes, stdout, stderr }).toMatchObject({ codes: expected })
  expect(stdout + stderr).not.toMatch(/^ +at .+:\d+/m)
}

function findCommands(path: readonly string[]): string[][] {
  const [, list = ''] = /^Commands:\n((?: .*\n)+)/m.exec(help(path)) ?? []
  const names = [...list.matchAll(/^ {2}([\w-]+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help')
  return names.flatMap((name) => [[...path, name], ...findCommands([...path, name])])
}

function findExamples(path: readonly string[]): string[] {
  const [, list = ''] = /^Examples:\n((?: .*\n?)+)/m.exec(help(path)) ?? []
  return [...list.matchAll(/^ {2}(\S.*)$/gm)].map(([, line = '']) => line)
}

function help(path: readonly string[]): string {
  return execFileSync(process.execPath, [bin, ...path, '--help'], { encoding: 'utf8' })
}
