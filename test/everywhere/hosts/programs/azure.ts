/**
 * The host and the worker of Azure Functions, as far as they pass HTTP on: `node azure.ts [stream]` in the directory of a project.
 * The programming model, the requests and the answers are those of its @azure/functions.
 */

import { randomUUID } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
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
  getCapabilities(capabilities: object): Promise<{ HttpUri?: string }>
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

const isStreamed = process.argv[2] === 'stream'
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

const { app } = await import('@azure/functions')
app.setup({ enableHttpStream: isStreamed })
const { main } = JSON.parse(readFileSync('package.json', 'utf8'))
for (const file of globSync(main)) await import(pathToFileURL(resolve(file)).href)
if (model === undefined || registered === undefined) throw new Error(`No function was registered by ${main}.`)
const { metadata, handler } = registered
const { getInvocationModel, getCapabilities } = model
const { HttpUri } = await getCapabilities({})
if ((HttpUri !== undefined) !== isStreamed) throw new Error(`Streams were not ${isStreamed ? 'enabled' : 'disabled'}.`)
const [name, { methods = [] }] = Object.entries(metadata.bindings).find(([, { type }]) => type === 'httpTrigger') ?? [
  '',
  {},
]

async function invoke(invocationId: string, http: object, headers: IncomingMessage['headers']) {
  const triggerMetadata = { Headers: { json: JSON.stringify(headers) } }
  const given = { inputData: [{ name, data: { http } }], triggerMetadata }
  const invocation = getInvocationModel({ invocationId, metadata, request: given, log: () => {} })
  const { context, inputs } = await invocation.getArguments()
  const result = await invocation.invokeFunction(context, inputs, handler)
  return invocation.getResponse(context, result)
}

/** The host reads the body, and passes its bytes on: the worker asks for them (`RawHttpBodyBytes`). */
async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { url, method, headers } = incoming
  const bytes = await buffer(incoming)
  const http = { url: `http://localhost${url}`, method, headers, body: { bytes } }
  const { returnValue } = await invoke(randomUUID(), http, headers)
  if (returnValue === undefined) throw new Error('It answered nothing.')
  outgoing.writeHead(Number(returnValue.http.statusCode), returnValue.http.headers).end(returnValue.http.body.bytes)
}

/** The host proxies the request to the worker. */
async function stream(incoming: IncomingMessage, outgoing: ServerResponse, uri: string): Promise<void> {
  const invocationId = randomUUID()
  const { url = '/', method } = incoming
  const forwarded = { 'x-ms-invocation-id': invocationId, 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'http' }
  const proxied = request(new URL(url, uri), { method, headers: { ...incoming.headers, ...forwarded } }, (response) => {
    response.pipe(outgoing.writeHead(response.statusCode ?? 502, response.headers))
  })
  proxied.on('error', () => outgoing.destroy())
  incoming.on('error', () => proxied.destroy())
  incoming.pipe(proxied)
  await invoke(invocationId, {}, incoming.headers)
}

createServer((incoming, outgoing) => {
  if (!methods.includes(incoming.method ?? '')) return void outgoing.writeHead(404).end()
  const done = HttpUri === undefined ? answer(incoming, outgoing) : stream(incoming, outgoing, HttpUri)
  done.catch(() => outgoing.destroy())
}).listen(process.env.PORT, () => {
  process.once('SIGTERM', () => process.exit())
})
