import { join } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const file = join(root, 'test/receiver/snippet.ts')

const head = `
import { z } from 'zod'
import { createReceiver, type MessageOf, type MessageType } from '../../src/index.ts'
const receiver = createReceiver({ secret: 's', events: { 'Order Completed': z.object({ total: z.number() }) } })
const types: MessageType[] = ['track', 'page']
`

/** Mistakes a user makes, and what the compiler must say to each. */
const mistakes: Readonly<Record<string, string>> = {
  "receiver.on('track', (message) => message.traits)": "Property 'traits' does not exist",
  "receiver.on('page', (message) => message.event)": "Property 'event' does not exist",
  "receiver.on('track', 'Order Completed', (message) => message.properties.totel)": "Property 'totel' does not exist",
  "receiver.on('track', 'Order Completed', (message) => message.properties.total.trim())":
    "Property 'trim' does not exist",
  "receiver.on(['identify', 'group'], (message) => message.groupId)": "Property 'groupId' does not exist",
  'receiver.on(types, (message) => message.event)': "Property 'event' does not exist",
  "receiver.on('*', (message) => message.event)": "Property 'event' does not exist",
  "receiver.on('tracks', () => {})": 'No overload matches this call',
  "receiver.on('page', 'Home', () => {})": `is not assignable to parameter of type '"track"'`,
  "receiver.on('track', (message) => { message.event = 'x' })": 'it is a read-only property',
  "export const wrong = (message: MessageOf<typeof receiver, 'track', 'Order Completed'>) => message.properties.totel":
    "Property 'totel' does not exist",
  "receiver.on('track', 'Order Completed', (message: MessageOf<typeof receiver, 'identify'>) => message)":
    "Property 'traits' is missing",
  "createReceiver({ secert: 's' })": "'secert' does not exist",
  "createReceiver({ secret: 's', events: { e: {} } })": "Property ''~standard'' is missing",
}

const diagnostics = compile(Object.keys(mistakes))

it.each(Object.entries(mistakes))('%s', (mistake, says) => {
  const messages = diagnostics.get(mistake) ?? []
  expect(messages.join('\n')).toContain(says)
})

it('says nothing about the lines around them', () => {
  expect(diagnostics.get('')).toBeUndefined()
})

/** One program with a mistake a line; what the compiler says, by line. */
function compile(lines: readonly string[]): ReadonlyMap<string, string[]> {
  const text = `${head}${lines.join('\n')}\n`
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: ['x.ts'] }, ts.sys, root)
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = (name) => name === file || fileExists(name)
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(name, text, ts.ScriptTarget.Latest) : getSourceFile(name, ...rest)
  const program = ts.createProgram([file], options, host)
  const found = new Map<string, string[]>()
  for (const { file: source, start = 0, messageText } of ts.getPreEmitDiagnostics(program)) {
    const line = source === undefined ? '' : (text.split('\n')[source.getLineAndCharacterOfPosition(start).line] ?? '')
    const key = lines.includes(line) ? line : ''
    found.set(key, [...(found.get(key) ?? []), ts.flattenDiagnosticMessageText(messageText, '\n')])
  }
  return found
}
