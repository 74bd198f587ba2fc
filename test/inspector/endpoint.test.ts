/** The inspector over real sockets: the page, what it shows first, and how a host mounts it. */

import express from 'express'
import { describe, expect, it } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve } from '../../adapters/node.ts'
import { createReceiver } from '../../src/index.ts'
import { createInspector, type Inspector } from '../../src/inspector.ts'
import { memoryQueue } from '../../src/queues/memory/index.ts'
import { closeLater, start } from './support.ts'

function create(): Inspector {
  const receiver = createReceiver({ secret: 'the secret' })
  const stored = createReceiver({ secret: 'the secret', inbox: { queue: memoryQueue() } })
  const inspector = createInspector({ receiver: { shop: receiver, stored } })
  closeLater(() => Promise.all([inspector.close(), receiver.close(), stored.close()]))
  return inspector
}

/** Opens the URL with the token as a browser does, and returns its cookie. */
async function signIn(url: string): Promise<string> {
  const response = await fetch(url, { redirect: 'manual' })
  expect(response.status).toBe(302)
  expect(response.headers.get('location')).toBe('./')
  return response.headers.get('set-cookie')?.split(';')[0] as string
}

describe('the inspector in a host', () => {
  const mounts = {
    'node:http': (inspector: Inspector) => serve(inspector, { path: '/hookline' }),
    Express: (inspector: Inspector) => express().use('/hookline', serveExpress(inspector)),
  }
  it.each(Object.entries(mounts))('%s serves the page and its data', async (_name, mount) => {
    const inspector = create()
    const origin = await start(mount(inspector))
    const cookie = await signIn(inspector.url(`${origin}/hookline`))
    const get = (path: string) => fetch(`${origin}/hookline${path}`, { headers: { cookie } })

    const page = await get('/')
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await page.text()).toContain('src="page.js"')
    for (const file of ['/page.js', '/page.css']) expect((await get(file)).status).toBe(200)

    expect(await (await get('/api/setup')).json()).toMatchObject({
      access: 'write',
      parts: [
        { name: 'shop', kind: 'receiver', hasQueue: false },
        { name: 'stored', kind: 'receiver', hasQueue: true },
      ],
      keep: { messages: 2_000, refused: 200 },
    })
  })
})
