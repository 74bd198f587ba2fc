/** The frameworks, and what Hookline aims at in each: CPU time a request, as a multiple of a peer's. */

import type { Contenders } from './contenders.ts'

export type Framework = 'node' | 'fastify' | 'koa' | 'express'
export type ContenderName = keyof Contenders
export type Peer = Exclude<ContenderName, 'hookline'>

interface FrameworkEntry {
  readonly title: string
  /** Loaded by the process that needs it, and only there. */
  readonly load: () => Promise<{ readonly contenders: Contenders }>
  readonly targets: Readonly<Partial<Record<Peer, Target>>>
}

/** `atMost` includes the number, `below` does not. */
export type Target = { readonly atMost: number } | { readonly below: number }

export const frameworks: Readonly<Record<Framework, FrameworkEntry>> = {
  node: {
    title: 'node:http',
    load: () => import('./node.ts'),
    targets: { bare: { atMost: 1.25 }, 'hand-written': { below: 1 }, octokit: { atMost: 0.55 } },
  },
  fastify: {
    title: 'Fastify 5',
    load: () => import('./fastify.ts'),
    targets: { bare: { atMost: 1.25 }, 'hand-written': { below: 1 } },
  },
  koa: {
    title: 'Koa 3',
    load: () => import('./koa.ts'),
    targets: { bare: { atMost: 1.15 }, 'hand-written': { below: 1 } },
  },
  express: {
    title: 'Express 5',
    load: () => import('./express.ts'),
    targets: { bare: { atMost: 1.15 }, 'hand-written': { below: 1 }, octokit: { atMost: 0.85 } },
  },
}
