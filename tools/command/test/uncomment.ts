/** Uncomments the code in what `hookline init` writes, as a reader does: comments in lower case, which are no sentences. */
export function uncomment(code: string): string {
  return code.replaceAll(/^( *)\/\/ (?=[^A-Z])/gm, '$1')
}
