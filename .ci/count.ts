/** Run as a program: prints how many tests of a report of vitest passed, failed, and did not run. */

import { readFileSync } from 'node:fs'

const report = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'))
const { numTotalTests: total, numPassedTests: passed, numFailedTests: failed } = report
if (![total, passed, failed].every(Number.isSafeInteger)) throw new Error('This is no report of vitest.')

console.log(passed, failed, total - passed - failed)
