/** What is measured, as the process that it runs in sees it. */

/** Sends messages to the endpoint. */
export interface Contender {
  /** Sends so many; resolves when all of them are delivered. */
  send(times: number): Promise<void>
  /** Makes so many calls that record a message, timed, and sends them afterwards. For clients. */
  record?(times: number): Promise<Recording>
}

/** What the calls cost, in nanoseconds a call. */
export interface Recording {
  /** How long the caller waited. */
  readonly waited: number
  /** CPU time, with what the call left to do before its message could be sent. */
  readonly cpu: number
}

/** Makes a contender that sends to this URL; what else it takes differs. */
export type OpenContender = (url: string, ...args: readonly string[]) => Promise<Contender>

/** The contenders, each loaded by the process that runs it, and only there. */
export const contenders = {
  bare: () => import('./bare.ts'),
  sender: () => import('./sender.ts'),
  destination: () => import('./destination.ts'),
  destinations: () => import('./destinations.ts'),
  client: () => import('./hookline-client.ts'),
  segment: () => import('./segment-client.ts'),
} as const satisfies Readonly<Record<string, () => Promise<{ readonly open: OpenContender }>>>

export type ContenderName = keyof typeof contenders
