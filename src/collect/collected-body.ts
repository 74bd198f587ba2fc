/** Reads the body of a request as its client sends it: JSON of several media types, compressed or not. */

import { type Gunzip, gunzipSync, inflateSync, type ZlibOptions } from 'node:zlib'
import { bodyTooLarge, type EndpointBody } from '../host/body.ts'
import type { EndpointRequest } from '../host/endpoint.ts'
import { readCoding, readJson } from '../host/read-json.ts'
import { HooklineError } from '../protocol/error.ts'
import { BATCH_LIMIT } from '../protocol/limits.ts'

/** Pages post `text/plain`, because a browser sends it without a preflight request; RudderStack's client for Node says it is a form. */
const MEDIA_TYPES = ['application/json', 'text/plain', 'application/x-www-form-urlencoded']

/** Inflates bytes. With `info`, the engine comes along, which tells how many of them it took. */
type Inflate = (bytes: Uint8Array, options: ZlibOptions) => { readonly buffer: Uint8Array; readonly engine: Gunzip }

/** How a content coding is undone (RFC 9110, section 8.4.1), and how its bytes begin, which no JSON does. */
interface Coding {
  readonly inflate: Inflate
  readonly firstByte: number
}

const GZIP: Coding = { inflate: gunzipSync as unknown as Inflate, firstByte: 0x1f }
const DEFLATE: Coding = { inflate: inflateSync as unknown as Inflate, firstByte: 0x78 }
const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', GZIP],
  ['deflate', DEFLATE],
  ['x-gzip', GZIP],
])
const ACCEPTED = { mediaTypes: MEDIA_TYPES, codings: ['identity', ...CODINGS.keys()] }

/** Reads the JSON of a body: at most 500 KB as it is sent, and 500 KB inflated. */
export async function readCalls(request: EndpointRequest): Promise<Uint8Array> {
  const body = await readJson(request, BATCH_LIMIT, ACCEPTED)
  if (wasParsedAsForm(body)) throw parsedAsForm()
  const coding = CODINGS.get(readCoding(request.headers))
  return coding === undefined || wasInflated(body, coding) ? body.bytes : inflate(body.bytes, coding)
}

/** Whether a parser has taken the JSON for the name of a field. */
function wasParsedAsForm({ source, bytes }: EndpointBody): boolean {
  return source === 'reserialised' && Buffer.from(bytes.subarray(0, 3)).toString() === '{"{'
}

/** Whether what read the body earlier has inflated it, as most parsers do. */
function wasInflated({ source, bytes }: EndpointBody, { firstByte }: Coding): boolean {
  return source !== 'stream' && bytes[0] !== firstByte
}

/** In this thread: a body takes 0.02 to 1 ms, one made to be slow 30 ms, and handing either to another thread 0.1 ms. */
function inflate(bytes: Uint8Array, coding: Coding): Uint8Array {
  let inflated: ReturnType<Inflate>
  try {
    inflated = coding.inflate(bytes, { maxOutputLength: BATCH_LIMIT, info: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge(BATCH_LIMIT)
    throw notInflatable('bytes that are damaged, cut off or not compressed')
  }
  if (inflated.engine.bytesWritten !== bytes.length) throw notInflatable('more bytes after their end')
  return inflated.buffer
}

function notInflatable(found: string): HooklineError {
  return new HooklineError(
    'content_encoding_invalid',
    `The body must be compressed as its Content-Encoding says. Got ${found}. Compress the body once, or send it without the header.`,
  )
}

function parsedAsForm(): HooklineError {
  return new HooklineError(
    'body_consumed',
    'The body must be read by the collector. Got the fields that a form parser made of it. Mount the collector before the parser, or have that keep the bytes as rawBody (a Buffer).',
  )
}
