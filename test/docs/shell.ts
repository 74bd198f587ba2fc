/** Holds the shell blocks against the project: the scripts, packages and files they name exist, and the curl calls are signed. */

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { verify } from 'hookline'

interface Manifest {
  readonly name: string
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: object
  readonly devDependencies: object
  readonly peerDependencies: object
}

const root = new URL('../../', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Manifest
const packages = new Set([
  manifest.name,
  ...Object.keys(manifest.dependencies),
  ...Object.keys(manifest.devDependencies),
  ...Object.keys(manifest.peerDependencies),
])

/**
 * Checks a block.
 *
 * @param secret What `$HOOKLINE_SECRET` holds while the block runs.
 * @param files The named blocks, which a reader saves before.
 * @returns What is wrong with it.
 */
export function checkShell(code: string, secret: string, files: ReadonlySet<string>): string[] {
  const { status, stderr } = spawnSync('sh', ['-n'], { input: code, encoding: 'utf8' })
  if (status !== 0) return [`sh: ${stderr.trim()}`]
  const commands = code
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const faults = commands.flatMap((command) => checkCommand(command, files))
  const hasCurl = commands.some((command) => command.startsWith('curl '))
  const [, own = secret] = /^HOOKLINE_SECRET=(\S+)$/m.exec(code) ?? []
  return hasCurl ? [...faults, ...checkCurl(code, own)] : faults
}

function checkCommand(command: string, files: ReadonlySet<string>): string[] {
  const words = command
    .replace(/^([A-Z_]+=\S* +)+/, '')
    .replace(/ +#.*$/, '')
    .split(/ +/)
  const [program = '', verb = '', ...rest] = words
  if (program === 'npm') return checkNpm(verb, rest)
  if (Object.hasOwn(DEPLOYING, program)) return checkDeploying(words, files)
  if (program === 'curl' || /^(export +)?[A-Z_]+=/.test(command)) return []
  return [`'${program}': no test knows this command`]
}

/** The programs that deploy, with what each may be told. `deploy.nightly.test.ts` runs what runs without them. */
const DEPLOYING: Readonly<Record<string, readonly string[]>> = {
  docker: ['compose'],
  node: ['--permission'],
  kubectl: ['apply', 'create', 'rollout'],
  sudo: ['install', 'npm', 'systemctl'],
}

/** What `npm init` and `npm install` make, and what a block writes itself. */
const MADE = ['package.json', 'package-lock.json', 'secret.txt']

function checkDeploying([program = '', verb = '', ...rest]: readonly string[], files: ReadonlySet<string>): string[] {
  if (!DEPLOYING[program]?.includes(verb)) return [`${program} ${verb}: no test knows this`]
  const named = rest.flatMap((word) => /^[\w-]+\.(?:js|json|mjs|service|toml|txt|ya?ml)$/.exec(word) ?? [])
  const missing = named.filter((name) => !MADE.includes(name) && !files.has(name))
  return missing.map((name) => `${program} ${verb}: no block is the file ${name}`)
}

function checkNpm(verb: string, words: readonly string[]): string[] {
  switch (verb) {
    case 'init':
      return words.join() === '--yes' ? [] : ['npm init: asks questions without --yes']
    case 'ci':
      return words.length === 0 ? [] : ['npm ci takes nothing more']
    case 'start':
    case 'test':
      return hasScript(verb)
    case 'run':
      return hasScript(words[0] ?? '')
    case 'install': {
      const names = words.filter((word) => !word.startsWith('-'))
      if (names.length === 0) return ['npm install: names no package']
      const isOther = (name: string): boolean => !packages.has(name.replace(/(?<=.)@.*/, '')) // Without its tag.
      return names.filter(isOther).map((name) => `npm install: ${name} is no package of ours`)
    }
    case 'audit':
      return words.join() === 'signatures' ? [] : ['npm audit: expected `signatures`']
    case 'exec': {
      const [dashes, node, file = ''] = words
      if (dashes === '--' && node === 'node' && existsSync(new URL(file, root))) return []
      return [`npm exec: expected '-- node' and a file that exists, not '${words.join(' ')}'`]
    }
    default:
      return [`npm ${verb}: no test knows this`]
  }
}

function hasScript(name: string): string[] {
  return Object.hasOwn(manifest.scripts, name) ? [] : [`npm run ${name}: there is no such script`]
}

/** Runs the block with a curl that only says what it was given. */
function checkCurl(code: string, secret: string): string[] {
  const { stdout, stderr } = spawnSync('sh', ['-euc', `curl() { printf '%s\\0' "$@"; }\n${code}`], {
    encoding: 'utf8',
    env: { ...process.env, HOOKLINE_SECRET: secret },
  })
  const words = stdout.split('\0')
  const after = (...flags: string[]): string[] =>
    words.filter((_, index) => index > 0 && flags.includes(words[index - 1] ?? ''))
  const headers = new Map(after('-H').map((header) => header.toLowerCase().split(': ') as [string, string]))
  const [body = ''] = after('--data-raw', '--data-binary')
  const faults: string[] = stderr === '' ? [] : [`sh: ${stderr.trim()}`]
  if (!words.some((word) => /^http:\/\/(127\.0\.0\.1|localhost):\d+\/webhooks$/.test(word))) {
    faults.push('curl: no address of a receiver on this machine, as http://127.0.0.1:3000/webhooks')
  }
  if (headers.get('content-type') !== 'application/json') faults.push('curl: no content-type: application/json')
  if (!verify(Buffer.from(body), headers.get('x-signature'), secret)) {
    faults.push('curl: x-signature is not the signature of the body in --data-raw')
  }
  return faults
}
