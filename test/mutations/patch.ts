/** A fault that is put into the sources on purpose, and the rows of docs/conformance.md whose tests must notice it. */

export interface Patch {
  readonly fault: string
  readonly file: string
  /** Occurs once in the file. */
  readonly from: string
  readonly to: string
  /** The names of tests, or how they begin, as far as no other begins so. Each must fail. */
  readonly rows: readonly string[]
}

/** The names of the tests that a patch names. Throws for a row that no test, or more than one, has. */
export function findRows({ fault, rows }: Patch, names: readonly string[]): readonly string[] {
  return rows.map((row) => {
    const found = names.filter((name) => name.startsWith(row))
    if (found.length === 1) return found[0] as string
    throw new Error(
      `${fault}: a row must begin one name of a test. Got ${found.length} for '${row}'. Write more of it.`,
    )
  })
}
