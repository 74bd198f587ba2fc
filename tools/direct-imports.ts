/** A build plugin. Without it, importing one name from the list of re-exports would load every file that the list names. */

import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Plugin } from 'esbuild'

/** The list of re-exports. Its path is relative to the root of the repository, where builds run. */
const LIST = resolve('src/internals.ts')
const NAMED = /^(?:import|export) \{([^}]*)\} from '([^']*)'$/gm

/** Makes the tools import the names in `src/internals.ts` directly from the files that declare them. */
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

/** Returns the path of the file that declares each value in the list, by the name of the value. */
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
