/** A plugin of the build. A list of re-exports ties its files together: what imports one name of it would load them all. */

import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Plugin } from 'esbuild'

/** From the root of the repository, where builds run: the configuration that imports this is bundled elsewhere. */
const LIST = resolve('src/internals.ts')
const NAMED = /^(?:import|export) \{([^}]*)\} from '([^']*)'$/gm

/** Has each file of the tools import what it needs of `src/internals.ts` from where that is declared. */
export const directImports: Plugin = {
  name: 'direct imports',
  setup(build) {
    build.onLoad({ filter: /[\\/]tools[\\/].*\.tsx?$/ }, async ({ path }) => {
      const files = await readFiles()
      const toDirect = (statement: string, list: string, from: string): string =>
        from.endsWith('/internals.ts')
          ? valuesIn(list)
              .map((name) => `import { ${name} } from ${JSON.stringify(files.get(name))}`)
              .join('\n')
          : statement
      return {
        contents: (await readFile(path, 'utf8')).replace(NAMED, toDirect),
        loader: path.endsWith('x') ? 'tsx' : 'ts',
      }
    })
  },
}

/** Finds where each value of the list is declared. */
async function readFiles(): Promise<ReadonlyMap<string, string>> {
  const statements = [...(await readFile(LIST, 'utf8')).matchAll(NAMED)]
  return new Map(
    statements.flatMap(([, list = '', from = '']) => valuesIn(list).map((name) => [name, join(LIST, '..', from)])),
  )
}

function valuesIn(list: string): string[] {
  const names = list.split(',').map((name) => name.trim())
  return names.filter((name) => name !== '' && !name.startsWith('type '))
}
