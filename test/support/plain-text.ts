/** Looks for a text in what an engine has stored, whichever way it writes bytes. */

/** Returns the text as it is, in hexadecimal digits and in base64, of which it has three forms: by the bytes before it. */
function formsOf(text: string): string[] {
  const bytes = Buffer.from(text)
  const inBase64 = [0, 1, 2].map((before) => {
    const shifted = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    return shifted.slice(before === 0 ? 0 : before + 1, -4) // The digits that the bytes around it change are left out.
  })
  return [text, bytes.toString('hex'), ...inBase64]
}

/** Returns those of the texts that are found in one of the forms. */
export function textsIn(stored: string, texts: readonly string[]): string[] {
  return texts.filter((text) => formsOf(text).some((form) => stored.includes(form)))
}
