/** What is measured, as the process sees it that runs it. */

/** All but `run` of what a turn calls is optional. */
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

/** Makes a contender: the export `open` of its file. */
// biome-ignore lint/suspicious/noExplicitAny: what a contender takes is between it and its part.
export type OpenContender = (...args: any[]) => Promise<Contender>
