/** Checks a page for what keeps people from using it: by axe-core, and by its widths. */

import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** Each view, and what is in it when it is complete. */
export const VIEWS = {
  Events: '.events td',
  Queues: '.queue-body svg',
  'Dead letters': '.letter',
  History: '.letter',
  Messages: '.message-row',
} as const
interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

async function findViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ readonly violations: readonly Violation[] }>(
    'axe.run(document, { resultTypes: ["violations"] })',
  )
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary ?? ''}`),
  )
}

/** Expects no violation, and nothing beside the window. */
export async function expectFit(page: Page, where: string): Promise<void> {
  expect.soft(await findViolations(page), where).toEqual([])
  expect.soft(await measureOverflow(page), `pixels beside the window: ${where}`).toBe(0)
}

export async function measureOverflow(page: Page): Promise<number> {
  return await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
