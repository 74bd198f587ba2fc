/**
 * The site: the guides in the order in which they are needed, the API reference that typedoc writes into `api/`, and the demo that
 * `tools/inspector/demo` writes into `public/`.
 */

import { existsSync, readFileSync } from 'node:fs'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { checkSite } from './check.ts'
import { linkToRepository, REPOSITORY, slugOf, version } from './links.ts'
import { writeText } from './text.ts'

const ORIGIN = 'https://hookline.github.io'
/** The newest release. */
const LATEST = '/hookline/'
/** The majors before this one, each of which is a site of its own: `1` is at `/hookline/v1/`. */
const EARLIER: readonly number[] = []

/** Written by typedoc; `npm run docs` runs it before the site is built. */
const reference = new URL('../api/typedoc-sidebar.json', import.meta.url)
const api: DefaultTheme.SidebarItem[] = existsSync(reference) ? JSON.parse(readFileSync(reference, 'utf8')) : []

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
      { text: 'API', link: '/api/' },
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
        text: 'Start',
        items: [
          { text: 'Getting started', link: '/start' },
          { text: 'Move to Hookline', link: '/moving' },
          { text: 'How it compares', link: '/compare' },
        ],
      },
      {
        text: 'Receive',
        items: [
          { text: 'Typed events', link: '/typed-events' },
          { text: 'Types from a plan or traffic', link: '/types' },
          { text: 'Secrets', link: '/secrets' },
          { text: 'Raw bodies', link: '/raw-bodies' },
          { text: 'Hosts', link: '/hosts' },
          { text: 'Errors', link: '/errors' },
          { text: 'Batches', link: '/batches' },
          { text: 'Known senders', link: '/senders' },
        ],
      },
      {
        text: 'Make it durable',
        items: [
          { text: 'The inbox', link: '/inbox' },
          { text: 'Queues', link: '/queues' },
          { text: 'Write your own engine', link: '/engines' },
        ],
      },
      {
        text: 'Test',
        items: [
          { text: 'Testing', link: '/testing' },
          { text: 'The command', link: '/command' },
          { text: 'The cases of a check', link: '/checks' },
        ],
      },
      {
        text: 'Find out what is wrong',
        items: [
          { text: 'Troubleshooting', link: '/troubleshooting' },
          { text: 'My signature does not match', link: '/signatures' },
        ],
      },
      { text: 'Send', items: [{ text: 'Sending', link: '/sending' }] },
      { text: 'Collect', items: [{ text: 'Collecting', link: '/collector' }] },
      { text: 'Record', items: [{ text: 'Recording', link: '/client' }] },
      {
        text: 'Run it in production',
        items: [
          { text: 'Deploy', link: '/deploy' },
          { text: 'Serverless', link: '/serverless' },
          { text: 'Scaling', link: '/scaling' },
          { text: 'The inspector', link: '/inspector' },
          { text: 'Observability', link: '/observability' },
          { text: 'Security', link: '/security' },
          { text: 'Runtimes', link: '/runtimes' },
          { text: 'Module settings', link: '/modules' },
          { text: 'Bundlers', link: '/bundlers' },
        ],
      },
      {
        text: 'Reference',
        items: [
          { text: 'Versions and promises', link: '/versions' },
          { text: 'Conformance', link: '/conformance' },
          { text: 'Architecture', link: '/architecture' },
          { text: 'API', link: '/api/', collapsed: true, items: api },
        ],
      },
    ],
    search: { provider: 'local' },
  },
})
