export { testDurableQueue } from './queue.ts'
