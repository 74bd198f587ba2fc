/** The site: the guides in the order in which they are needed, the reference, and the demo that `tools/inspector/demo` writes into `public/`. */

import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { checkSite } from './check.ts'
import { linkToRepository, REPOSITORY, slugOf, version } from './links.ts'
import { writeText } from './text.ts'

const ORIGIN = 'https://hookline.github.io'
/** The newest release. */
const LATEST = '/hookline/'
/** The majors before this one, each of which is a site of its own: `1` is at `/hookline/v1/`. */
const EARLIER: readonly number[] = []

const { exports }: { readonly exports: object } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

/** The pages that `.ci/reference.ts` writes, one for each subpath. */
const reference = Object.keys(exports)
  .filter((subpath) => subpath !== './package.json')
  .map((subpath) => {
    const name = subpath === '.' ? 'hookline' : subpath.slice(2).replace('/', '-')
    return { text: subpath.replace('.', 'hookline'), link: `/reference/${name}` }
  })

export default defineConfig({
  title: 'Hookline',
  description: 'Receive, test and send the event webhooks of a customer-data platform.',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  base: process.env.SITE_BASE ?? LATEST,
  cleanUrls: true,
  markdown: { languageAlias: { cjs: 'js' }, anchor: { slugify: slugOf }, config: linkToRepository },
  transformHead: ({ page, siteData: { base } }) =>
    page === '404.md' ? [] : [['link', { rel: 'alternate', type: 'text/markdown', href: `${base}${page}` }]],
  async buildEnd(config) {
    await writeText(config, ORIGIN)
    await checkSite(config.outDir, `${ORIGIN}${config.site.base}`)
  },
  themeConfig: {
    nav: [
      { text: 'Guide', link: '/start' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Demo', link: '/demo/', target: '_self' },
      {
        text: `v${version}`,
        items: [
          { text: 'Latest version', link: `${ORIGIN}${LATEST}`, target: '_self' },
          ...EARLIER.map((major) => ({
            text: `Version ${major}`,
            link: `${ORIGIN}${LATEST}v${major}/`,
            target: '_self',
          })),
          { text: 'Changelog', link: `${REPOSITORY}/blob/v${version}/CHANGELOG.md` },
        ],
      },
    ],
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
    outline: [2, 3],
    sidebar: [
      {
        text: 'Core',
        items: [
          { text: 'Getting started', link: '/start' },
          { text: 'Signatures and secrets', link: '/signatures' },
          { text: 'Typed events', link: '/typed-events' },
          { text: 'Errors', link: '/errors' },
          { text: 'Where it runs', link: '/hosts' },
          { text: 'Testing', link: '/testing' },
          { text: 'The command', link: '/command' },
        ],
      },
      {
        text: 'When you need more',
        items: [
          { text: 'The inbox', link: '/inbox' },
          { text: 'Guarantees', link: '/guarantees' },
          { text: 'Queues', link: '/queues' },
          { text: 'Write your own engine', link: '/engines' },
          { text: 'Deploy', link: '/deploy' },
          { text: 'Serverless', link: '/serverless' },
          { text: 'Known senders', link: '/senders' },
          { text: 'Sending', link: '/sending' },
          { text: 'Collecting and recording', link: '/collector' },
          { text: 'The inspector', link: '/inspector' },
          { text: 'Observability', link: '/observability' },
          { text: 'Move to Hookline', link: '/moving' },
        ],
      },
      {
        text: 'Reference',
        items: [
          { text: 'Exports and options', link: '/reference/', collapsed: true, items: reference },
          { text: 'The specification', link: '/specification' },
          { text: 'Versions and promises', link: '/versions' },
          { text: 'How it compares', link: '/compare' },
        ],
      },
    ],
    search: { provider: 'local' },
  },
})
