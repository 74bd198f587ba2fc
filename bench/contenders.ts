/** The contenders, each loaded by the process that runs it, and only there. */

/** What runs messages, as the process that it runs in sees it. All but `run` of what a turn calls is optional. */
export interface Contender {
  /** What the one that started it is told first: the port of a server. */
  readonly hello?: unknown
  /** Before a turn; not measured. */
  prepare?(messages: number): Promise<unknown>
  /** Runs so many; resolves when all are done. Missing where they come from elsewhere. */
  run?(messages: number): Promise<unknown>
  /** Waits for what those that came from elsewhere left to do; measured. */
  settle?(): Promise<unknown>
  /** After a turn; not measured. */
  restore?(messages: number): Promise<unknown>
  /** What else is reported of the turn. */
  figures?(): Readonly<Record<string, number>>
}

/** Makes a contender. */
// biome-ignore lint/suspicious/noExplicitAny: what a contender takes is between it and its part.
export type OpenContender = (...args: any[]) => Promise<Contender>

export const contenders = {
  server: () => import('./http/server.ts'),
  load: () => import('./http/load.ts'),
  receiver: () => import('./receive/receiver.ts'),
  collector: () => import('./collect/collector.ts'),
  bare: () => import('./send/bare.ts'),
  floor: () => import('./send/floor.ts'),
  sender: () => import('./send/sender.ts'),
  destination: () => import('./send/destination.ts'),
  drain: () => import('./durable/drain.ts'),
  inbox: () => import('./durable/inbox.ts'),
  peer: () => import('./durable/peer.ts'),
  wake: () => import('./durable/wake.ts'),
  pushes: () => import('./durable/pushes.ts'),
  client: () => import('./send/client.ts'),
  watched: () => import('./inspect/watched.ts'),
} as const satisfies Readonly<Record<string, () => Promise<{ readonly open: OpenContender }>>>

export type ContenderName = keyof typeof contenders
