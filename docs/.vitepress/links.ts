/** Where the links of a page lead: those to files of the repository, on GitHub; those to headings, with the anchors of GitHub. */

import { existsSync, readFileSync, statSync } from 'node:fs'
import type { MarkdownRenderer } from 'vitepress'

const root = new URL('../../', import.meta.url)

export const { version }: { readonly version: string } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
export const REPOSITORY = 'https://github.com/hookline/hookline'

/** Matches what is code in a Markdown text, and the targets of links outside of it, which are the group. */
const LINK = /```[\s\S]*?```|`[^`\n]*`|(?<=\]\()([^)\s]+)(?=\))/g

/** Returns what the links and the pictures of a Markdown text lead to. */
export function targetsOf(markdown: string): string[] {
  const links = [...markdown.matchAll(LINK)].flatMap(([, target]) => target ?? [])
  return [...new Set([...links, ...targetsOfHtml(withoutCode(markdown))])]
}

/** Returns what the links, the scripts and the pictures of an HTML text lead to. */
export function targetsOfHtml(html: string): string[] {
  const targets = [...html.matchAll(/ (?:href|src|srcset)="([^"]*)"/g)].map(([, target = '']) => target)
  return [...new Set(targets.map((target) => target.replaceAll('&amp;', '&')))]
}

/** Returns the anchors of a Markdown text: those of its headings, and those that it has as HTML. */
export function anchorsOf(markdown: string): string[] {
  const text = withoutCode(markdown)
  const slugs = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slugOf(heading))
  const numbered = slugs.map((slug, index) => {
    const before = slugs.slice(0, index).filter((other) => other === slug).length
    return before === 0 ? slug : `${slug}-${before}`
  })
  return [...numbered, ...anchorsOfHtml(text)]
}

export function anchorsOfHtml(html: string): string[] {
  return [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/```[\s\S]*?```/g, '')
}

/** Puts other targets in the place of those of the links of a Markdown text. */
export function replaceLinks(markdown: string, replace: (target: string) => string): string {
  return markdown.replace(LINK, (text, target?: string) => (target === undefined ? text : replace(target)))
}

/**
 * Returns where a link leads that leaves the pages: to the file on GitHub, as it is at the tag of this version. Others stay.
 *
 * @param page Its path below `docs/`.
 * @throws Error for a file that the repository does not have.
 */
export function toRepository(target: string, page: string): string {
  const url = new URL(target, new URL(`docs/${page}`, root))
  if (!target.startsWith('.') || url.href.startsWith(`${root}docs/`)) return target
  const { hash } = url
  url.hash = ''
  if (!existsSync(url)) throw new Error(`docs/${page} links to ${target}, which is not in the repository.`)
  const kind = statSync(url).isDirectory() ? 'tree' : 'blob'
  return `${REPOSITORY}/${kind}/v${version}/${url.href.slice(root.href.length)}${hash}`
}

/** A plugin of markdown-it: the same for the pages of the site. */
export function linkToRepository(md: MarkdownRenderer): void {
  md.core.ruler.push('repository', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (href !== null) token.attrSet('href', toRepository(href, env.relativePath))
    }
  })
}

/** The anchor that GitHub gives a heading, so that one link works there and on the site. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')
}
