/** A project of an example: its files, beside the packages of `test/everywhere` and the packed tarball. */

import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'
import { type Child, startProgram } from '../../docs/child.ts'
import { pack } from '../../package/project.ts'
import { runProgram } from '../../package/run.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const everywhere = fileURLToPath(new URL('..', import.meta.url))

const bins = [everywhere, root].map((directory) => join(directory, 'node_modules/.bin'))
const PATH = [...bins, process.env.PATH].join(delimiter)
const QUIET = { CI: '1', ASTRO_TELEMETRY_DISABLED: '1', NEXT_TELEMETRY_DISABLED: '1', DENO_NO_UPDATE_CHECK: '1' }

interface Projects {
  copy(example: string): string
  remove(): void
}

/** The packages are outside of the project, which has them inside when it is a user's, and may be links. */
const ROOT = "export default { turbopack: { root: '/' } }\n"

/** A package that the project of a user would have in another release than its neighbours here. */
const OWN: Readonly<Record<string, { readonly name: string; readonly from: string }>> = {
  astro: { name: 'cookie', from: 'astro/node_modules/cookie' },
  h3: { name: 'h3', from: 'h3-2' },
}

async function createProjects(): Promise<Projects> {
  mkdirSync(join(everywhere, '.cache'), { recursive: true })
  const directory = mkdtempSync(join(everywhere, '.cache/hosts-'))
  const { filename } = await pack(directory)
  const modules = join(directory, 'node_modules/hookline')
  mkdirSync(modules, { recursive: true })
  await runProgram('tar', ['-xzf', filename, '-C', modules, '--strip-components=1'], directory)
  mkdirSync(join(modules, 'node_modules')) // Other packages here have an older release, so npm would nest its own.
  symlinkSync(join(root, 'node_modules/raw-body'), join(modules, 'node_modules/raw-body'))
  return {
    copy(example) {
      const project = mkdtempSync(join(directory, `${example}-`))
      cpSync(join(root, 'examples/hosts', example), project, { recursive: true })
      if (example === 'next') writeFileSync(join(project, 'next.config.mjs'), ROOT)
      const own = OWN[example]
      if (own !== undefined) {
        mkdirSync(join(project, 'node_modules'))
        symlinkSync(join(everywhere, 'node_modules', own.from), join(project, 'node_modules', own.name))
      }
      return project
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** Projects of this test file, and what runs in them: all are gone when it ends. */
export function openProjects() {
  let projects: Projects
  const children: Child[] = []
  beforeAll(async () => {
    projects = await createProjects()
  })
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
    projects?.remove()
  })
  return {
    copy: (example: string): string => projects.copy(example),
    /** Starts one of the programs of `test/everywhere` in a project. Nothing it does may need the network. */
    run(cwd: string, [program = '', ...args]: readonly string[], env: Readonly<Record<string, string>> = {}): Child {
      const child = startProgram(program, args, { cwd, env: { ...QUIET, HOOKLINE_SECRET: undefined, PATH, ...env } })
      children.push(child)
      return child
    },
  }
}
