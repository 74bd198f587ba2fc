/**
 * The host and the worker of Azure Functions, as far as they pass HTTP on: `node azure.ts` in the directory of a project.
 * The programming model, the requests and the answers are those of its @azure/functions.
 */

import { randomUUID } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import Module from 'node:module'
import { resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'

/** What of `@azure/functions-core` is used, which only the worker has. */
interface Invocation {
  getArguments(): Promise<{ context: object; inputs: unknown[] }>
  invokeFunction(context: object, inputs: unknown[], handler: unknown): Promise<unknown>
  getResponse(context: object, result: unknown): Promise<{ returnValue?: { http: HttpAnswer } }>
}
interface Model {
  getInvocationModel(context: object): Invocation
}
interface Metadata {
  readonly bindings: Readonly<Record<string, { readonly type: string; readonly methods?: readonly string[] }>>
}
interface HttpAnswer {
  readonly statusCode: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly bytes?: Uint8Array }
}

let model: Model | undefined
let registered: { metadata: Metadata; handler: unknown } | undefined
const core = {
  setProgrammingModel: (given: Model) => {
    model = given
  },
  registerFunction: (metadata: Metadata, handler: unknown) => {
    registered = { metadata, handler }
  },
  log: () => {},
}

// As the worker does it.
const original = Module.prototype.require
Module.prototype.require = function require(this: NodeJS.Module, id: string) {
  return id === '@azure/functions-core' ? core : Reflect.apply(original, this, [id])
} as NodeJS.Require

const { main } = JSON.parse(readFileSync('package.json', 'utf8'))
for (const file of globSync(main)) await import(pathToFileURL(resolve(file)).href)
if (model === undefined || registered === undefined) throw new Error(`No function was registered by ${main}.`)
const { metadata, handler } = registered
const { getInvocationModel } = model
const [name, { methods = [] }] = Object.entries(metadata.bindings).find(([, { type }]) => type === 'httpTrigger') ?? [
  '',
  {},
]

/** The host reads the body, and passes its bytes on: the worker asks for them (`RawHttpBodyBytes`). */
async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { url, method, headers } = incoming
  const bytes = await buffer(incoming)
  const http = { url: `http://localhost${url}`, method, headers, body: { bytes } }
  const triggerMetadata = { Headers: { json: JSON.stringify(headers) } }
  const given = { inputData: [{ name, data: { http } }], triggerMetadata }
  const invocation = getInvocationModel({ invocationId: randomUUID(), metadata, request: given, log: () => {} })
  const { context, inputs } = await invocation.getArguments()
  const result = await invocation.invokeFunction(context, inputs, handler)
  const { returnValue } = await invocation.getResponse(context, result)
  if (returnValue === undefined) throw new Error('It answered nothing.')
  outgoing.writeHead(Number(returnValue.http.statusCode), returnValue.http.headers).end(returnValue.http.body.bytes)
}

createServer((incoming, outgoing) => {
  if (!methods.includes(incoming.method ?? '')) return void outgoing.writeHead(404).end()
  answer(incoming, outgoing).catch(() => outgoing.destroy())
}).listen(process.env.PORT, () => {
  process.once('SIGTERM', () => process.exit())
})
