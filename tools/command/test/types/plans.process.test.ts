/** The files that `hookline types` writes, through the compiler. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import ts from 'typescript'
import { expect, it, onTestFinished } from 'vitest'
import { hookline, root } from '../command.ts'
import { plans } from './plans.ts'

it('they compile under --strict, and give handlers their types', { timeout: 240_000 }, async () => {
  const cache = join(root, '.cache/tmp') // In the project, so that the compiler finds the packages.
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'types-'))
  onTestFinished(() => rm(folder, { recursive: true, maxRetries: 9 }))
  const files: string[] = []
  const receivers: string[] = []
  for (const [at, { path }] of plans.entries()) {
    for (const format of ['zod', 'valibot', 'typescript']) {
      const out = join(folder, `plan-${at}-${format}.ts`)
      await hookline(['types', path, '--format', format, '--out', out])
      files.push(out)
      if (format === 'typescript') continue
      const name = `plan${files.length}`
      receivers.push(`import * as ${name} from './${basename(out)}'\ncreateReceiver({ secret: 'x', ...${name} })`)
    }
  }
  const nested = plans.findIndex(({ name }) => name === 'segment-public-nested.json')
  const receiver = join(folder, 'receiver.ts')
  const code = `import { createReceiver } from '../../../src/index.ts'
${receivers.join('\n')}
import { events, traits } from './plan-${nested}-zod.ts'
const receiver = createReceiver({ secret: 'x', events, traits })
receiver.on('track', 'Book Borrowed', ({ properties }) => {
  const branch: 'north' | 'river' | 'old town' = properties.branch
  const fee: number | null | undefined = properties.late_fee
  // @ts-expect-error the plan has no such property
  console.log(branch, fee, properties.nothing)
})
`
  await writeFile(receiver, code)

  const program = ts.createProgram([...files, receiver], {
    ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, noEmit: true },
    ...{ skipLibCheck: true, allowImportingTsExtensions: true, module: ts.ModuleKind.NodeNext },
    ...{ target: ts.ScriptTarget.ES2023, lib: ['lib.es2024.d.ts'], types: ['node'] },
  })
  const problems = ts.getPreEmitDiagnostics(program).map(({ messageText, file }) => {
    return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })

  expect(problems).toEqual([])
})
