/** Reads the body of a request as its client sends it: JSON with one of several media types, compressed or not. */

import zlib, { type ZlibOptions } from 'node:zlib'
import { bodyTooLarge, type EndpointBody } from '../host/body.ts'
import type { EndpointRequest } from '../host/endpoint.ts'
import { readCoding, readJson } from '../host/read-json.ts'
import { HooklineError } from '../protocol/error.ts'
import { BATCH_LIMIT } from '../protocol/limits.ts'

/**
 * Web pages post `text/plain`, which a browser sends without a preflight request; RudderStack's Node.js client declares its JSON as a form.
 */
const MEDIA_TYPES = ['application/json', 'text/plain', 'application/x-www-form-urlencoded']

/**
 * A synchronous function of zlib. With `info`, it also returns the engine, whose `bytesWritten` is the number of input
 * bytes that the engine used. The types of Node.js lack this option.
 */
type Inflate = (
  bytes: Uint8Array,
  options: ZlibOptions & { readonly info: true },
) => { readonly buffer: Uint8Array; readonly engine: { readonly bytesWritten: number } }

const { gunzipSync, inflateSync } = zlib as unknown as Readonly<Record<'gunzipSync' | 'inflateSync', Inflate>>

/** A content coding (RFC 9110, section 8.4.1). `firstByte` is the first byte of its data, with which no JSON text begins. */
interface Coding {
  readonly inflate: Inflate
  readonly firstByte: number
}

const GZIP: Coding = { inflate: gunzipSync, firstByte: 0x1f }
const DEFLATE: Coding = { inflate: inflateSync, firstByte: 0x78 }
const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', GZIP],
  ['deflate', DEFLATE],
  ['x-gzip', GZIP],
])
const ACCEPTED = { mediaTypes: MEDIA_TYPES, codings: ['identity', ...CODINGS.keys()] }

/** Reads the JSON of a body: at most 500 KB as sent, and at most 500 KB after inflating. */
export async function readCalls(request: EndpointRequest): Promise<Uint8Array> {
  const body = await readJson(request, BATCH_LIMIT, ACCEPTED)
  if (wasParsedAsForm(body)) throw parsedAsFormError()
  const coding = CODINGS.get(readCoding(request.headers))
  return coding === undefined || wasInflated(body, coding) ? body.bytes : inflate(body.bytes, coding)
}

/**
 * Returns whether a form parser has read the body. Such a parser reads the whole JSON as the name of a field, so this name begins with a
 * brace.
 */
function wasParsedAsForm({ source, bytes }: EndpointBody): boolean {
  return source === 'reserialised' && Buffer.from(bytes.subarray(0, 3)).toString() === '{"{'
}

/** Returns whether a parser has already read and inflated the body, as most parsers do. */
function wasInflated({ source, bytes }: EndpointBody, { firstByte }: Coding): boolean {
  return source !== 'stream' && bytes[0] !== firstByte
}

/**
 * Inflates a body in this thread, which takes 0.02 to 1 ms, or up to 30 ms for a hostile body. Passing the body to another thread would
 * cost another 0.1 ms.
 */
function inflate(bytes: Uint8Array, coding: Coding): Uint8Array {
  let inflated: ReturnType<Inflate>
  try {
    inflated = coding.inflate(bytes, { maxOutputLength: BATCH_LIMIT, info: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge(BATCH_LIMIT)
    throw notInflatableError('bytes that are damaged, cut off or not compressed')
  }
  if (inflated.engine.bytesWritten !== bytes.length)
    throw notInflatableError('more bytes after the end of the compressed data')
  return inflated.buffer
}

function notInflatableError(found: string): HooklineError {
  return new HooklineError(
    'content_encoding_invalid',
    `The body must be compressed as its Content-Encoding says. Got ${found}. Compress the body once, or send it without the header.`,
  )
}

function parsedAsFormError(): HooklineError {
  return new HooklineError(
    'body_consumed',
    'A form parser read the body before the collector. Mount the collector before the parser, or have the parser keep the bytes as rawBody (a Buffer).',
  )
}
