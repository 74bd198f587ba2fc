/** The site: the guides in the order in which they are needed, and the API reference that typedoc writes into `api/`. */

import { existsSync, readFileSync } from 'node:fs'
import { type DefaultTheme, defineConfig } from 'vitepress'

/** Written by typedoc; `npm run docs` runs it before the site is built. */
const reference = new URL('../api/typedoc-sidebar.json', import.meta.url)
const api: DefaultTheme.SidebarItem[] = existsSync(reference) ? JSON.parse(readFileSync(reference, 'utf8')) : []

export default defineConfig({
  title: 'Hookline',
  description: 'Receive, test and send the event webhooks of a customer-data platform.',
  cleanUrls: true,
  markdown: { languageAlias: { cjs: 'js' } },
  // Files of the repository that the pages link to are not pages of the site.
  ignoreDeadLinks: [/^\.\.?\/(\.\.\/)*(README|CONTRIBUTING|SECURITY|CHANGELOG|bench|examples|src|test)/],
  themeConfig: {
    nav: [
      { text: 'Guide', link: '/start' },
      { text: 'API', link: '/api/' },
    ],
    outline: [2, 3],
    sidebar: [
      { text: 'Start', items: [{ text: 'Getting started', link: '/start' }] },
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
          { text: 'My signature does not match', link: '/signatures' },
        ],
      },
      { text: 'Send', items: [{ text: 'Sending', link: '/sending' }] },
      { text: 'Collect', items: [{ text: 'Collecting', link: '/collector' }] },
      { text: 'Record', items: [{ text: 'Recording', link: '/client' }] },
      {
        text: 'Run it in production',
        items: [
          { text: 'Scaling', link: '/scaling' },
          { text: 'The inspector', link: '/inspector' },
          { text: 'Observability', link: '/observability' },
          { text: 'Security', link: '/security' },
          { text: 'Runtimes', link: '/runtimes' },
          { text: 'Module settings', link: '/modules' },
        ],
      },
      {
        text: 'Reference',
        items: [
          { text: 'Conformance', link: '/conformance' },
          { text: 'Architecture', link: '/architecture' },
          { text: 'API', link: '/api/', collapsed: true, items: api },
        ],
      },
    ],
    search: { provider: 'local' },
  },
})
