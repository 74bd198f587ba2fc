/**
 * Remembers handled messages in memory, for a receiver that runs in one process.
 *
 * @module hookline/dedupe/memory
 */

export type { Claim, Claimed, Dedupe } from './receive/dedupe.ts'
export { type MemoryDedupeOptions, memoryDedupe } from './receive/memory-dedupe.ts'
