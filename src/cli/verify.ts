/** `hookline verify`: tells whether a signature is right, and what broke it. */

import type { Command } from 'commander'
import { explainSignature } from '../message/explain/explain-signature.ts'
import { addExamples, addSecretOptions, readInput, requireSecret, type SecretOptions } from './arguments.ts'
import { escaped, paint, print } from './terminal.ts'

/** A body that is longer takes minutes to explain. */
const LIMIT = 5_000_000

interface Options extends SecretOptions {
  readonly body: string
  readonly signature: string
  readonly expected?: boolean
  readonly json?: boolean
}

/** Declares the subcommand. */
export function define(command: Command): void {
  command
    .requiredOption('--body <file>', 'the body, exactly as it arrived; - reads stdin')
    .requiredOption('--signature <text>', 'the value of X-Signature, exactly as it arrived')
    .option('--expected', 'also print the right signature: whoever sees it can send this body as authentic')
    .option('--json', 'print one JSON object')
    .action(verify)
  addSecretOptions(command)
  command.addHelpText('after', '\nExit codes: 0 the signature is right, 1 it is not, 2 wrong usage.')
  addExamples(command, [
    [
      'hookline verify --body body.json --signature "$SIGNATURE"',
      'Verifies a body that was kept, with the secret of HOOKLINE_SECRET.',
    ],
    [
      'hookline verify --body - --signature "$SIGNATURE" --secret-file secret.txt < body.json',
      'Reads the body from stdin.',
    ],
  ])
}

async function verify(options: Options): Promise<void> {
  const secret = requireSecret(options)
  const body = await readInput('--body', options.body, LIMIT)
  const { expected = false } = options
  const explanation = explainSignature(body, options.signature, secret, { expected })
  const isRight = explanation.verdict === 'matches'
  process.exitCode = isRight ? 0 : 1
  if (options.json) return print(JSON.stringify(explanation))
  const lines = explanation.message.split('\n').map(escaped)
  print(lines.map((line) => paint(isRight ? 'green' : 'red', line)).join('\n'))
  if (explanation.expected) print(`Expected: ${explanation.expected}`)
}
