/** Numbers and tables as they are printed: Markdown, so that the output can be committed. */

/** The middle of a list of numbers. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The number that a share of the others, from 0 to 1, is not above. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
}

/** Whether a target was met, as the tables say it. */
export function verdict(isReached: boolean): string {
  return isReached ? 'reached' : '**missed**'
}

/** Prints a table: the first column is text, the others are aligned to the right. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0), 4))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  console.log([line(head), line(rule), ...rows.map(line)].join('\n'), '\n')
}
