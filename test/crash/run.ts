/** `npm run test:crash`: the crash tests with many rounds; `-- --rounds 100 --seed 1 --only sqlite` changes them. */

import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: process.env.CRASH_ROUNDS ?? '50' },
    seed: { type: 'string', default: process.env.CRASH_SEED ?? '' },
    only: { type: 'string', default: '' },
  },
})
for (const name of ['rounds', 'seed'] as const) {
  if (!/^\d*$/.test(values[name])) throw new TypeError(`--${name}: must be a whole number.`)
}
// A name that no test has would run nothing, and look green.
if (!['', 'sqlite', 'bullmq', 'pg-boss'].includes(values.only)) {
  throw new TypeError('--only: must be sqlite, bullmq or pg-boss.')
}

const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', 'test/crash', '-t', values.only],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      CRASH_ROUNDS: values.rounds,
      ...(values.seed === '' ? {} : { CRASH_SEED: values.seed }),
    },
  },
)
process.exitCode = status ?? 1
