/** The site as text: each page as Markdown beside it, and all of them in `llms.txt` and `llms-full.txt` (https://llmstxt.org). */

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DefaultTheme, SiteConfig } from 'vitepress'
import { replaceLinks, toRepository } from './links.ts'

type Site = Pick<SiteConfig<DefaultTheme.Config>, 'srcDir' | 'outDir' | 'pages' | 'site'>

/** Writes them into the folder of the site. The links of `llms.txt` begin with the origin; those of a page stay relative. */
export async function writeText({ srcDir, outDir, pages, site }: Site, origin: string): Promise<void> {
  const { title, description, base, themeConfig } = site
  const start = `${origin}${base}`
  const read = async (page: string): Promise<string> => {
    const markdown = await readFile(join(srcDir, page), 'utf8')
    return withoutPictures(replaceLinks(markdown, (target) => toRepository(target, page)))
  }
  const write = async (page: string, text: string): Promise<void> => {
    const path = join(outDir, page)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }

  const index = [`# ${title}`, `> ${description}`, `All pages in one file: [llms-full.txt](${start}llms-full.txt)`]
  const whole: string[] = []
  const listed = new Set<string>()
  for (const { text: section, items = [] } of themeConfig.sidebar as DefaultTheme.SidebarItem[]) {
    const lines: string[] = []
    for (const { text: name, link = '' } of items.flatMap((item) => [item, ...(item.items ?? [])])) {
      const page = `${link.slice(1)}${link.endsWith('/') ? 'index' : ''}.md`
      const markdown = await read(page)
      listed.add(page)
      lines.push(`- [${name}](${start}${page})${firstSentence(markdown)}`)
      whole.push(withSource(markdown, `${start}${page}`))
    }
    index.push(`## ${section}`, lines.join('\n'))
  }
  const unlisted = pages.filter((page) => !page.includes('/') && page !== 'index.md' && !listed.has(page))
  if (unlisted.length > 0) throw new Error(`The sidebar must list every guide. Got no ${unlisted.join(', ')}.`)
  const overview = `${index.join('\n\n')}\n`
  await write('llms.txt', overview)
  await write('llms-full.txt', whole.join('\n'))
  for (const page of pages) await write(page, page === 'index.md' ? overview : await read(page))
}

/** Text has no pictures: what they show stays. */
function withoutPictures(markdown: string): string {
  return markdown
    .replaceAll(/<picture>[\s\S]*?alt="([^"]*)"[\s\S]*?<\/picture>/g, '(A picture: $1)')
    .replaceAll(/!\[([^\]]*)\]\([^)]*\)/g, '(A picture: $1)')
}

/** The first sentence of the paragraph below the title; empty if there is no paragraph. */
function firstSentence(markdown: string): string {
  const [, sentence] = /^# .*\n\n(?![#|<]|```)([\s\S]*?)[.:](?:\s|$)/.exec(markdown) ?? []
  if (sentence === undefined) return ''
  return `: ${sentence.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\s+/g, ' ')}.`
}

/** A page among others: below its title, where it is; and links that lead out of the file. */
function withSource(markdown: string, url: string): string {
  const absolute = replaceLinks(markdown, (target) => new URL(target, url).href)
  return absolute.replace(/^# .*\n/, (title) => `${title}\nSource: ${url}\n`)
}
