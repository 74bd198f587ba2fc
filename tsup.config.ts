import { defineConfig } from 'tsup'

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    sender: 'src/sender/index.ts',
    collector: 'src/collector/index.ts',
    client: 'src/client/index.ts',
    // Types alone: their declarations would be put into those of an engine, and everybody would need its package.
    'queues/queue': 'src/queues/queue.ts',
    'queues/memory': 'src/queues/memory.ts',
    'queues/sqlite': 'src/queues/sqlite.ts',
    // A file of its own: the thread that sqlite starts.
    'queues/sqlite-worker': 'src/queues/sqlite-worker.ts',
    'queues/bullmq': 'src/queues/bullmq.ts',
    'queues/pg-boss': 'src/queues/pg-boss.ts',
    'dedupe/memory': 'src/dedupe/memory.ts',
    'dedupe/sqlite': 'src/dedupe/sqlite.ts',
    otel: 'src/otel/index.ts',
    testing: 'src/testing/index.ts',
    express: 'adapters/express.ts',
    koa: 'adapters/koa.ts',
    fastify: 'adapters/fastify.ts',
    node: 'adapters/node.ts',
    fetch: 'adapters/fetch.ts',
  },
  format: 'esm',
  target: 'node22',
  platform: 'node',
  dts: true,
  sourcemap: true,
  clean: true,
  // node:sqlite and others exist under their prefix only.
  removeNodeProtocol: false,
})
