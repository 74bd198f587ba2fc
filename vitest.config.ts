import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    exclude: ['test/package/**'],
    typecheck: { enabled: true, include: ['test/**/*.test-d.ts'], tsconfig: 'tsconfig.json' },
    coverage: {
      provider: 'v8',
      include: ['src/protocol/**', 'src/**', 'adapters/**'],
      exclude: ['src/queues/sqlite-worker.ts'], // A thread is not measured.
      thresholds: {
        'src/protocol/**': { lines: 100, branches: 97 },
        'src/receiver/**': { lines: 100, branches: 97 },
        'src/dedupe/**': { lines: 100, branches: 97 },
        'src/queues/**': { lines: 100, branches: 97 },
        'src/sender/**': { lines: 100, branches: 97 },
        'src/collector/**': { lines: 100, branches: 97 },
        'src/client/**': { lines: 100, branches: 97 },
      },
    },
  },
})
