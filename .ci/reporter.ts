/**
 * A reporter of vitest that writes a result of `.ci/run` into the file of RESULT: how many tests passed, and a line for each fault
 * and for each test that passed only at its second attempt.
 */

import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter, SerializedError, TestModule, TestSuite } from 'vitest/node'

const { RESULT = '', SUITE = '' } = process.env

export default class implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly SerializedError[]): void {
    const lines: string[] = []
    let passed = 0

    for (const module of modules) {
      const place = placeOf(module)
      for (const suite of [module, ...module.children.allSuites()]) {
        for (const error of suite.errors()) lines.push(`FAILED: ${nameOf(place, suite)}: ${firstLine(error)}`)
      }
      let unrun = 0
      for (const test of module.children.allTests()) {
        const { state, errors = [] } = test.result()
        if (state === 'passed') passed += 1
        else if (state !== 'failed') unrun += 1
        if (state === 'failed') lines.push(`FAILED: ${place} > ${test.fullName}: ${firstLine(errors[0])}`)
        if (test.diagnostic()?.flaky) lines.push(`FLAKY: ${place} > ${test.fullName}: ${firstLine(errors[0])}`)
      }
      if (unrun > 0) lines.push(`FAILED: ${place}: ${unrun} tests skipped, to do, or not begun`)
    }
    for (const error of strayErrors) lines.push(`FAILED: ${SUITE}: outside of a test: ${firstLine(error)}`)
    if (passed === 0) lines.push(`FAILED: ${SUITE}: no test passed`)

    writeFileSync(RESULT, `${[`PASSED: ${passed}`, ...lines].join('\n')}\n`)
  }
}

/** The project and the file of a test, by which `.ci/run` names it. */
function placeOf({ moduleId, project }: TestModule): string {
  return `${project.name}: ${relative(project.config.root, moduleId)}`
}

function nameOf(place: string, suite: TestModule | TestSuite): string {
  return suite.type === 'suite' ? `${place} > ${suite.fullName}` : place
}

function firstLine(error: Pick<SerializedError, 'stack' | 'message'> | undefined): string {
  return (error?.stack ?? error?.message ?? 'no error').split('\n')[0] ?? ''
}
