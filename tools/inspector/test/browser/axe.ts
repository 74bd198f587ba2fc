/** Checks a page for what keeps people from using it: by axe-core, and by its widths. */

import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

export async function findViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ readonly violations: readonly Violation[] }>(
    'axe.run(document, { resultTypes: ["violations"] })',
  )
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary ?? ''}`),
  )
}

/** Returns the texts that reach beyond the right edge of one of these boxes. */
export async function findSpilt(page: Page, boxes: string): Promise<string[]> {
  return await page.locator(boxes).evaluateAll((all) =>
    all.flatMap((box) => {
      const { right } = box.getBoundingClientRect()
      const spilt = [...box.querySelectorAll('*')].filter((inner) => inner.getBoundingClientRect().right > right)
      return spilt.map(({ textContent }) => textContent ?? '')
    }),
  )
}

export async function measureOverflow(page: Page): Promise<number> {
  return await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
