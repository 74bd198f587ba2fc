/** Plans in each form that is kept in public: through the command, the compiler and a receiver. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { createReceiver } from 'hookline'
import { signedRequest } from 'hookline/testing'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hookline } from '../command.ts'
import { run } from './code.ts'

interface Case {
  readonly plan: string
  readonly message: { readonly type: 'track' | 'identify' | 'group'; readonly event?: string }
  readonly passes: boolean
  readonly because: string
  /** The place of what no schema says. */
  readonly unsupported?: string
}

const SECRET = 'the secret of these plans'
const root = resolve(import.meta.dirname, '../../..')
const cases: Case[] = JSON.parse(await readFile(join(import.meta.dirname, 'plans/messages.json'), 'utf8'))
const plans = [...Map.groupBy(cases, ({ plan }) => plan)]
const FORMATS = ['zod', 'valibot', 'typescript', 'json-schema'] as const

/** In the project, so that the compiler finds the packages. */
let folder: string
beforeAll(async () => {
  await mkdir(join(root, '.cache/tmp'), { recursive: true })
  folder = await mkdtemp(join(root, '.cache/tmp/types-'))
})
afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

describe.each(plans)('%s', (plan, cases) => {
  const path = join(import.meta.dirname, 'plans', plan)

  it.each(['zod', 'valibot'])('becomes code of %s that accepts and refuses what it does', async (format) => {
    const { code, stdout, stderr } = await hookline(['types', path, '--format', format])
    expect(code).toBe(0)
    const receiver = createReceiver({ secret: SECRET, ...run(stdout), onError: () => {} } as never)
    receiver.on('*', () => {})
    for (const { message, passes, because, unsupported } of cases) {
      const { headers, bytes } = signedRequest(message as never, SECRET)
      const received = await receiver.receive(bytes, headers)
      const error = received.ok ? undefined : received.error.code
      if (unsupported !== undefined) expect(stderr).toContain(unsupported)
      // valibot says less than zod: what it does not is named, too.
      const isNamed = unsupported !== undefined || (format === 'valibot' && isUnsupported(stderr, message))
      const expected = passes || (isNamed && error === undefined) ? undefined : 'schema_mismatch'
      expect({ error, message, because }).toEqual({ error: expected, message, because })
    }
  })

  it('has a schema for each of its messages', async () => {
    const { stdout } = await hookline(['types', path])
    const { events, traits } = run(stdout)
    const missing = cases.filter(({ message: { type, event = '' } }) => {
      return type === 'track' ? !Object.hasOwn(events, event) : !Object.hasOwn(traits, type)
    })
    expect(missing).toEqual([])
  })

  it('is the same after a way through JSON Schema', async () => {
    const { stdout: schema } = await hookline(['types', path, '--format', 'json-schema'])
    const file = join(folder, `${plan.replace(/\W/g, '-')}.json`)
    await writeFile(file, schema)
    const [direct, again] = await Promise.all([hookline(['types', path]), hookline(['types', file])])
    expect(again.stdout).toBe(direct.stdout)
    expect((await hookline(['types', file, '--format', 'json-schema'])).stdout).toBe(schema)
  })
})

function isUnsupported(findings: string, { event = '' }: Case['message']): boolean {
  return findings.split('\n').some((line) => line.includes(`${event}: `) && line.includes('is not supported'))
}

it('the generated files compile under --strict, and give handlers their types', { timeout: 240_000 }, async () => {
  const files: string[] = []
  for (const [at, [plan]] of plans.entries()) {
    for (const format of FORMATS) {
      if (format === 'json-schema') continue
      const out = join(folder, `plan-${at}-${format}.ts`)
      await hookline(['types', join(import.meta.dirname, 'plans', plan), '--format', format, '--out', out])
      files.push(out)
    }
  }
  const nested = plans.findIndex(([plan]) => plan === 'segment-public-nested.json')
  const receiver = join(folder, 'receiver.ts')
  await writeFile(
    receiver,
    `import { createReceiver } from '../../../../src/index.ts'
${files
  .filter((file) => !file.includes('typescript'))
  .map((file, at) => `import * as plan${at} from './${basename(file)}'\ncreateReceiver({ secret: 'x', ...plan${at} })`)
  .join('\n')}
import { events, traits } from './plan-${nested}-zod.ts'
const receiver = createReceiver({ secret: 'x', events, traits })
receiver.on('track', 'Book Borrowed', ({ properties }) => {
  const branch: 'north' | 'river' | 'old town' = properties.branch
  const fee: number | null | undefined = properties.late_fee
  // @ts-expect-error the plan has no such property
  console.log(branch, fee, properties.nothing)
})
`,
  )
  const program = ts.createProgram([...files, receiver], {
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    lib: ['lib.es2024.d.ts'],
    types: ['node'],
  })
  const problems = ts.getPreEmitDiagnostics(program).map(({ messageText, file }) => {
    return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
  expect(problems).toEqual([])
})
