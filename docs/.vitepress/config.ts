/** The site of the guides. The API reference is a site of its own that typedoc writes; it is copied in as it is. */

import { existsSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'

const api = { text: 'API reference', link: '/api/index.html', target: '_self' }

export default defineConfig({
  title: 'Hookline',
  description: 'Receive, test and send the event webhooks of a customer-data platform.',
  srcExclude: ['api/**'],
  themeConfig: {
    nav: [{ text: 'Guides', link: '/raw-bodies' }, api],
    sidebar: [
      {
        text: 'Guides',
        items: [
          { text: 'Raw bodies and parsers', link: '/raw-bodies' },
          { text: 'Secrets', link: '/secrets' },
          { text: 'Typed events', link: '/typed-events' },
          { text: 'The inbox', link: '/inbox' },
          { text: 'Errors', link: '/errors' },
          { text: 'Observability', link: '/observability' },
          { text: 'Testing your endpoint', link: '/testing' },
          { text: 'Known senders', link: '/senders' },
          { text: 'Sending', link: '/sending' },
          { text: 'Collecting', link: '/collector' },
          { text: 'Recording', link: '/client' },
          { text: 'Conformance', link: '/conformance' },
          api,
        ],
      },
    ],
    search: { provider: 'local' },
  },
  async buildEnd({ srcDir, outDir }) {
    const written = join(srcDir, 'api')
    if (existsSync(written)) await cp(written, join(outDir, 'api'), { recursive: true })
  },
})
