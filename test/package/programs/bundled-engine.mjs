// Loads the engine on pg-boss, which needs the package pg for one option alone.
import { pgBossQueue } from 'hookline/queues/pg-boss'

export const runBundled = () => typeof pgBossQueue
