/** `hookline types`: writes the schemas of events and traits from tracking plans and messages, or compares messages with plans. */

import { globSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join as joinPath } from 'node:path'
import type { Command } from 'commander'
import { choice, readInput } from '../arguments.ts'
import { openOutput, requirePlain } from '../output-file.ts'
import { counted, escaped, note, print, UsageError } from '../terminal.ts'
import { createInference } from './infer.ts'
import { type PlanFile, readPlans } from './plan.ts'
import { FORMATS, type Format, MARK, printRules } from './print.ts'
import { type Finding, mergeRules, type Rule } from './rule.ts'
import { openTraffic, type Seen, type Traffic } from './traffic.ts'

/** The maximum size of a plan file, in bytes. */
const PLAN_LIMIT = 50_000_000
const PLAN_FILES = '**/*.{json,yaml,yml,tf}'
/** The maximum number of places to list for one finding. */
const NAMED_PLACES = 8

interface Options {
  readonly out?: string
  readonly format: Format
  readonly enums?: boolean
  readonly check?: boolean
  readonly json?: boolean
  readonly junit?: string
  readonly name?: string
  readonly prefix?: string
  readonly schema?: string
}

export function define(command: Command): void {
  command
    .argument(
      '[sources...]',
      'plans and messages: files, folders of plans, - for messages on stdin, or locations of queues',
    )
    .option('--out <file>', 'the file to write. Default: stdout')
    .addOption(choice('--format <format>', 'the format of the file', FORMATS).default('zod'))
    .option('--enums', 'write enums for texts that are repeated in messages')
    .option('--check', 'compare the messages with the plan, and write no schemas')
    .option('--json', 'with --check: print a JSON object for each event')
    .option('--junit <file>', 'with --check: also write the results to a JUnit XML file')
    .option('--name <name>', 'the queue whose history to read. Default: every queue at the location')
    .option('--prefix <prefix>', 'the prefix of the keys in Redis. Default: bull')
    .option('--schema <schema>', 'the pg-boss schema in PostgreSQL. Default: pgboss')
    .action(types)
    .addHelpText('after', HELP)
}

const HELP = `
Each SOURCE is recognised by its contents:
  plans     of Segment (Public API, Config API, Terraform), of RudderStack (its YAML files, or a folder of them),
            and JSON Schema from draft 4 to 2020-12
  messages  one on each line, the store of \`hookline listen\`, or the history of an inbox (see \`hookline queue\`)
If several plans contain an event, its newest version is used. Messages add the events that are in no plan.
From messages, only names and types are written, not values.
Without SOURCE, the location of queues is read from HOOKLINE_QUEUE, which keeps a password out of the process list.
Exit codes: 0 done, 1 with --check: messages break the plan or belong to events that are not in it, 2 wrong usage.

Examples:
  hookline types plan.json --out events.ts
      Writes the schemas of a tracking plan, for createReceiver({ events, traits }).
  hookline types .hookline/listen.sqlite --out events.ts
      Writes schemas that fit the messages stored by \`hookline listen\`.
  hookline types --check plan.json messages.ndjson
      Shows which messages break the plan.`

async function types(given: readonly string[], options: Options): Promise<void> {
  requireFitting(options)
  const { HOOKLINE_QUEUE: queue } = process.env
  const sources = given.length > 0 || !queue ? given : [queue]
  if (sources.length === 0) throw new UsageError('SOURCE is required. Pass a plan or messages: see --help.')
  const findings: Finding[] = []
  const addFinding = (finding: Finding): void => void findings.push(finding)
  const { traffic, files } = await openSources(sources, options)
  const ofPlans = attempt(() => readPlans(files, addFinding))
  if (ofPlans.length === 0 && files.length > 0) {
    noteAll(findings)
    throw new UsageError(
      `SOURCE must contain a plan. No plan was found in ${counted(files.length, 'file')}. A RudderStack plan needs all of its files: pass their folder.`,
    )
  }
  if (options.check) {
    if (ofPlans.length === 0 || traffic.length === 0) {
      throw new UsageError(
        `--check needs a plan and messages. Pass ${ofPlans.length === 0 ? 'a plan' : 'messages'}, too.`,
      )
    }
    const { createCheck, printCheck } = await import('./check.ts')
    const check = createCheck(mergeRules(ofPlans, [], addFinding), addFinding)
    await readAll(traffic, check.add)
    noteAll(findings)
    return printCheck(check.results(), options)
  }
  const inference = createInference({ enums: options.enums ?? false })
  await readAll(traffic, inference.add)
  const rules = mergeRules(ofPlans, inference.rules(), addFinding)
  if (rules.length === 0)
    throw new UsageError(
      'SOURCE contains no track, identify or group messages, and no plan with rules. Pass another SOURCE.',
    )
  const text = attempt(() => printRules(rules, options.format, addFinding))
  noteAll([...findings, ...inference.findings()])
  if (options.out === undefined) process.stdout.write(text)
  else await write(options.out, text, rules)
}

/**
 * Calls a step that walks through a plan.
 *
 * @throws UsageError if the plan is nested too deeply for the stack.
 */
function attempt<T>(step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new UsageError('SOURCE is nested too deeply. Pass a plan with fewer levels.')
  }
}

function requireFitting({ check = false, out, enums, json, junit }: Options): void {
  const unfit = check ? { '--out': out, '--enums': enums } : { '--json': json, '--junit': junit }
  const [flag] = Object.entries(unfit).find(([, value]) => value !== undefined) ?? []
  if (flag === undefined) return
  throw new UsageError(
    check ? `${flag} cannot be combined with --check. Omit one of them.` : `${flag} needs --check. Pass --check, too.`,
  )
}

interface Sources {
  readonly traffic: readonly Traffic[]
  readonly files: readonly PlanFile[]
}

async function openSources(sources: readonly string[], options: Options): Promise<Sources> {
  const [traffic, files]: [Traffic[], PlanFile[]] = [[], []]
  for (const source of sources) {
    const paths = await listFolder(source)
    const found = paths === undefined ? await openTraffic(source, options) : undefined
    if (found !== undefined) traffic.push(found)
    else for (const path of paths ?? [source]) files.push(await readPlanFile(path, paths !== undefined))
  }
  return { traffic, files }
}

/** Lists the files in a folder that may contain plans. Returns undefined if the source is not a folder. */
async function listFolder(source: string): Promise<readonly string[] | undefined> {
  const isFolder = await stat(source).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isFolder) return undefined
  const names = globSync(PLAN_FILES, { cwd: source, exclude: ['**/node_modules/**'] })
  if (names.length === 0) {
    throw new UsageError(
      `SOURCE ${source} contains no .json, .yaml, .yml or .tf files. Pass a tracking plan, or its folder.`,
    )
  }
  return names.sort().map((name) => joinPath(source, name))
}

async function readPlanFile(name: string, isFound: boolean): Promise<PlanFile> {
  return { name, text: (await readInput('SOURCE', name, PLAN_LIMIT)).toString(), isFound }
}

async function readAll(traffic: readonly Traffic[], addSeen: (seen: Seen) => void): Promise<void> {
  const skipped = new Map<string, number>()
  for (const { messages } of traffic) {
    const each = messages((reason) => void skipped.set(reason, (skipped.get(reason) ?? 0) + 1))
    for await (const seen of each) addSeen(seen)
  }
  for (const [reason, count] of skipped) note(`${counted(count, 'message')} left out: ${escaped(reason)}`)
}

/** Prints each finding once, with its places. */
function noteAll(findings: readonly Finding[]): void {
  for (const [text, found] of Map.groupBy(findings, ({ text }) => text)) {
    const places = [...new Set(found.map(({ place }) => place))]
    const more = places.length > NAMED_PLACES ? `, and ${places.length - NAMED_PLACES} more` : ''
    note(escaped(`${places.slice(0, NAMED_PLACES).join(', ')}${more}: ${text}.`))
  }
}

/** @throws UsageError for an existing file that `hookline types` did not write, and for anything but a regular file. */
async function write(path: string, text: string, rules: readonly Rule[]): Promise<void> {
  requirePlain('--out', path)
  const before = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new UsageError(
      `--out: the existing file ${path} cannot be read: ${error.message}. Make it readable, or pass another path.`,
    )
  })
  if (before !== undefined && !before.slice(0, 200).includes(MARK)) {
    throw new UsageError(`--out: ${path} was not written by this command. Delete it, or pass another path.`)
  }
  if (before !== text) openOutput('--out', path, 0o666)(text)
  const events = rules.filter(({ type }) => type === 'track').length
  const traits = rules.filter(({ type }) => type !== 'track').map(({ type }) => type)
  const what = [counted(events, 'event'), ...(traits.length > 0 ? [`traits of ${traits.join(' and ')}`] : [])].join(
    ', ',
  )
  print(escaped(`${before === text ? 'Nothing changed in' : 'Wrote'} ${path}: ${what}.`))
}
