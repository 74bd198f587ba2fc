/** `hookline verify`: says whether a signature matches, and explains why it does not. */

import type { Command } from 'commander'
import { explainSignature, type SignatureExplanation } from 'hookline/testing'
import { addSecretOptions, readInput, requireSecret, type SecretOptions } from './arguments.ts'
import { note, paint, print } from './terminal.ts'

/** The maximum size of a body, in bytes. The longer the body, the longer the search for the cause of a mismatch takes. */
const LIMIT = 2_000_000

interface Options extends SecretOptions {
  readonly body: string
  readonly signature: string
  readonly expected?: boolean
  readonly json?: boolean
}

export function define(command: Command): void {
  command
    .requiredOption('--body <file>', 'the file with the body, exactly as it arrived; - reads stdin')
    .requiredOption('--signature <text>', 'the value of X-Signature, exactly as it arrived')
    .option('--expected', 'also print the right signature, which lets anyone forge this message')
    .option('--json', 'print one JSON object')
    .action(verify)
  addSecretOptions(command).addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 the signature is right, 1 it is not, 2 wrong usage.

Examples:
  hookline verify --body body.json --signature "$SIGNATURE"
      Verifies a saved body with the secret in HOOKLINE_SECRET.
  hookline verify --body - --signature "$SIGNATURE" --secret-file secret.txt < body.json
      Reads the body from stdin.`

async function verify(options: Options): Promise<void> {
  const secret = await requireSecret(options)
  const body = await readInput('--body', options.body, LIMIT)
  if (body.length === 0) note('The body is empty.')
  const { expected = false } = options
  const explanation = explainSignature(body, options.signature, secret, { expected })
  process.exitCode = explanation.verdict === 'matches' ? 0 : 1
  print(options.json ? JSON.stringify(explanation) : linesOf(explanation).join('\n'))
}

/** Returns the verdict and a line for each finding. The lines quote no part of the body, the signature or the secret. */
function linesOf({ verdict, message, causes, tried, expected }: SignatureExplanation): string[] {
  const lines = message.split('\n')
  const last = expected === undefined ? [] : ['', `Expected: ${expected}`]
  if (verdict === 'matches') return [...lines.map((line) => paint('green', line)), ...last]
  if (verdict === 'unexplained') {
    const [first = '', ...ofForm] = lines
    return [paint('red', first), ...ofForm, 'Tried:', ...listTried(tried), ...last]
  }
  if (causes.length === 1) return [paint('red', 'The signature does not match.'), ...lines, ...last]
  const found = lines.map((line, index) => `${index + 1}. ${line}`)
  return [paint('red', `The signature does not match, for ${causes.length} reasons:`), ...found, ...last]
}

const TRIED: readonly (readonly [codes: RegExp, words: string])[] = [
  [/^key_/, 'the digest of the body without the secret, of both joined, and of both swapped'],
  [/^secret_/, 'the secret with and without white space and quotation marks, and in other encodings'],
  [/^body_(line|space|bom)/, 'the body with and without line breaks, white space and a byte order mark'],
  [
    /^body_(latin1|ascii|utf|base64|json|form|percent)/,
    'the body in other encodings, encoded one time too many or too few',
  ],
  [/^body_(empty|object)/, 'an empty body, and "[object Object]"'],
  [/^body_first/, 'the first element of the list'],
  [/^body_reserialised/, 'the JSON as JavaScript, Python, PHP, Go, Ruby and Rails write it, with various settings'],
]

function listTried(tried: SignatureExplanation['tried']): string[] {
  const found = TRIED.filter(([codes]) => tried.some((code) => codes.test(code)))
  return found.map(([, words]) => `- ${words}`)
}
