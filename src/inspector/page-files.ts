/** The files of the page, which the build puts in here as text. */

/** The files of the page, as text. */
export interface PageFiles {
  readonly html: string
  readonly script: string
  readonly style: string
}

declare const HOOKLINE_PAGE: string

/** The page, its script and its style. */
export const pageFiles: PageFiles = JSON.parse(HOOKLINE_PAGE)
