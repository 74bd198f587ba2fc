/** Checks the built site: whatever leads to the site itself, in its pages, their Markdown and `llms.txt`, leads to a file and an anchor of it. */

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { anchorsOf, anchorsOfHtml, targetsOf, targetsOfHtml } from './links.ts'

interface Page {
  readonly targets: readonly string[]
  readonly anchors: ReadonlySet<string>
}

/**
 * @param start The URL of the site.
 * @throws Error that lists the dead links.
 */
export async function checkSite(outDir: string, start: string): Promise<void> {
  const names = (await readdir(outDir, { recursive: true })).filter((name) => /\.\w+$/.test(name))
  const files = new Set(names.map((name) => name.replaceAll('\\', '/')))
  const pages = new Map<string, Page>()
  for (const name of files) {
    if (/\.(html|md)$|^llms.*\.txt$/.test(name))
      pages.set(name, readPage(name, await readFile(join(outDir, name), 'utf8')))
  }

  const faultOf = (name: string, target: string): string | undefined => {
    const url = new URL(target, new URL(name.replace(/(index)?\.html$/, ''), start))
    if (!url.href.startsWith(start)) return undefined
    const path = url.href.slice(start.length).replace(/[?#].*/, '')
    const file = path === '' || path.endsWith('/') ? `${path}index.html` : files.has(path) ? path : `${path}.html`
    if (!files.has(file)) return 'no such file'
    const anchor = decodeURIComponent(url.hash.slice(1))
    const isView = anchor.startsWith('/') // Of the demo, which finds it by itself.
    return anchor === '' || isView || pages.get(file)?.anchors.has(anchor) ? undefined : 'no such anchor'
  }
  const dead = [...pages].flatMap(([name, { targets }]) =>
    targets.flatMap((target) => {
      const fault = faultOf(name, target)
      return fault === undefined ? [] : `${name} → ${target}: ${fault}`
    }),
  )
  if (dead.length > 0) throw new Error(`The site has ${dead.length} dead links.\n${dead.join('\n')}`)
}

function readPage(name: string, text: string): Page {
  return name.endsWith('.html')
    ? { targets: targetsOfHtml(text), anchors: new Set(anchorsOfHtml(text)) }
    : { targets: targetsOf(text), anchors: new Set(anchorsOf(text)) }
}
