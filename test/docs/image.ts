/** Follows a Dockerfile without a container engine: makes the files of the image, and runs its command on them with bubblewrap. */

import { execFileSync, execSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type Child, startProgram } from './child.ts'

export interface Image {
  readonly exposed: number
  /** Runs it as `docker run` with these options does; of ports it knows `--env PORT=…` only. */
  start(options: readonly string[]): Container
  remove(): void
}

interface Container extends Pick<Child, 'output' | 'exit' | 'printed'> {
  /** To its first process, from outside, as an engine does. */
  kill(signal: NodeJS.Signals): void
  /** Runs a command beside the first process. @throws Error when it fails. */
  exec(command: readonly string[]): string
  /** Ends it, if it still runs. */
  end(): void
}

/** What is at hand in node:24-slim, beside Node and npm: the user `node`. */
const PASSWD = 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n'
const GROUP = 'root:x:0:\nnode:x:1000:\n'

/**
 * Builds it.
 *
 * @param context The folder with the files that are copied.
 * @param registry Packages that are not released yet: they are where `package-lock.json` names them.
 * @throws Error for an instruction that nothing here follows, and when one fails.
 */
export function buildImage(dockerfile: string, context: string, registry: readonly string[]): Image {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-image-'))
  const root = join(folder, 'root')
  const env: Record<string, string> = { PATH: '/programs:/programs/node:/usr/bin:/bin' }
  let [directory, user, exposed, command] = ['/', 'root', 0, ['sh']]
  const programs = prepare(root)

  for (const [, instruction, text = ''] of dockerfile.matchAll(/^([A-Z]+) +(.*)$/gm)) {
    const words = text.split(/ +/)
    if (instruction === 'ENV') Object.assign(env, Object.fromEntries(words.map((word) => word.split('='))))
    else if (instruction === 'WORKDIR') enter(text)
    else if (instruction === 'COPY') copy(words)
    else if (instruction === 'RUN') build(text)
    else if (instruction === 'USER') user = text
    else if (instruction === 'EXPOSE') exposed = Number(text)
    else if (instruction === 'CMD') command = JSON.parse(text)
    else if (instruction !== 'FROM') throw new Error(`Nothing here follows ${instruction}.`)
  }

  function enter(path: string): void {
    directory = path
    mkdirSync(join(root, path), { recursive: true })
  }

  function copy(words: readonly string[]): void {
    const target = join(root, directory, words.at(-1) ?? '')
    for (const name of words.slice(0, -1)) cpSync(join(context, name), join(target, name))
    for (const path of registry) cpSync(path, join(target, basename(path)))
  }

  function build(line: string): void {
    // As npm is set up on this machine, which may reach its registry only through a proxy with a certificate of its own.
    const [cache = '', userconfig = ''] = ['cache', 'userconfig'].map((name) =>
      execSync(`npm config get ${name}`, { encoding: 'utf8' }).trim(),
    )
    const { NODE_EXTRA_CA_CERTS = '' } = process.env
    const files = ['/etc/resolv.conf', '/etc/hosts', '/etc/ssl', userconfig, NODE_EXTRA_CA_CERTS].filter(
      (path) => path !== '',
    )
    const outside = [...files.flatMap((path) => ['--ro-bind-try', path, path]), '--bind', cache, cache]
    const npm = { npm_config_cache: cache, npm_config_userconfig: userconfig, npm_config_prefer_offline: 'true' }
    const variables = toOptions({ ...env, ...npm, NODE_EXTRA_CA_CERTS, HOME: '/root' })
    const options = [
      '--bind',
      root,
      '/',
      ...programs,
      ...outside,
      '--chdir',
      directory,
      ...variables,
      'sh',
      '-euc',
      line,
    ]
    const { status, stdout, stderr } = spawnSync('bwrap', options, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`RUN ${line}: ended with ${status}\n${stdout}${stderr}`)
  }

  return {
    exposed,
    start(options) {
      const mounts = toMounts(options)
      const given = valuesOf(options, '--env').map((pair) => /^(\w+)=(.*)$/s.exec(pair)?.slice(1) as [string, string])
      const all = [...mounts, '--chdir', directory, ...toOptions({ ...env, ...Object.fromEntries(given) })]
      const as = ['--no-new-privs', ...(valuesOf(options, '--cap-drop').includes('ALL') ? ['--bounding-set=-all'] : [])]
      const run = [...all, '--', 'setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', ...as]
      // The first process of its own namespace gets no signal that it does not handle, as in a container.
      const child = startProgram('bwrap', ['--unshare-pid', '--as-pid-1', ...run, ...command])
      const kill = (signal: NodeJS.Signals): void => {
        const pids = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
        process.kill(Number.parseInt(pids, 10), signal)
      }
      let isOver = false
      child.exit.finally(() => (isOver = true)).catch(() => {})
      return {
        get output() {
          return child.output
        },
        exit: child.exit,
        printed: child.printed,
        kill,
        end: () => {
          if (!isOver) kill('SIGKILL')
        },
        exec: (words) => execFileSync('bwrap', [...run, ...words], { encoding: 'utf8', stdio: 'pipe' }),
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }

  function toMounts(options: readonly string[]): string[] {
    const mounts = [options.includes('--read-only') ? '--ro-bind' : '--bind', root, '/', ...programs]
    for (const path of valuesOf(options, '--tmpfs')) mounts.push('--tmpfs', path)
    for (const volume of valuesOf(options, '--volume')) {
      const [source = '', target = '', mode] = volume.split(':')
      const isNamed = !source.startsWith('/')
      const path = isNamed ? join(folder, source) : source
      // A new volume gets what the image has there, with its owner.
      if (isNamed && !existsSync(path)) execFileSync('cp', ['--archive', join(root, target), path])
      if (!isNamed) makeMountPoint(join(root, target))
      mounts.push(mode === 'ro' ? '--ro-bind' : '--bind', path, target)
    }
    return mounts
  }
}

/** Makes what the base image has. @returns The options that put the programs of this machine into it. */
function prepare(root: string): string[] {
  for (const name of ['etc', 'proc', 'dev', 'tmp', 'root']) mkdirSync(join(root, name), { recursive: true })
  for (const name of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(root, name))
  writeFileSync(join(root, 'etc/passwd'), PASSWD)
  writeFileSync(join(root, 'etc/group'), GROUP)
  const npm = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())
  const bound = {
    '/usr': '/usr',
    '/programs/node': dirname(process.execPath),
    '/programs/npm-package': dirname(dirname(npm)),
  }
  for (const target of Object.keys(bound)) mkdirSync(join(root, target), { recursive: true })
  symlinkSync('npm-package/bin/npm-cli.js', join(root, 'programs/npm'))
  const mounts = Object.entries(bound).flatMap(([target, path]) => ['--ro-bind', path, target])
  return ['--clearenv', ...mounts, '--proc', '/proc', '--dev', '/dev']
}

function makeMountPoint(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, '', { flag: 'a' })
}

function toOptions(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value])
}

function valuesOf(options: readonly string[], name: string): string[] {
  return options.filter((_, index) => options[index - 1] === name)
}

/** What a block gives to `docker`, for each call. It runs in the folder. */
export function recordDocker(code: string, folder: string, secret: string): string[][] {
  const script = `docker() { printf 'docker\\0'; printf '%s\\0' "$@"; }\n${code}`
  const env = { ...process.env, HOOKLINE_SECRET: secret }
  const printed = execFileSync('sh', ['-euc', script], { cwd: folder, env, encoding: 'utf8' })
  return printed
    .split('docker\0')
    .slice(1)
    .map((call) => call.split('\0').slice(0, -1))
}

export function readGuide(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
}
