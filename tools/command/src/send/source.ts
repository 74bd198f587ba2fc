/** Reads the messages to send from a source: a type, a file with one message, or the lines of a file or of stdin. */

import { type FileHandle, open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { HooklineError, MESSAGE_TYPES } from 'hookline'
import { fixtures } from 'hookline/testing'
import { nearest } from '../../../../src/internals.ts'
import { cannotRead, readInput } from '../arguments.ts'
import { splitLines } from '../lines.ts'
import { counted, UsageError } from '../terminal.ts'
import { type Changes, type Prepared, prepare } from './prepare.ts'

const LIMIT = 5_000_000

export interface Item {
  readonly prepared?: Prepared
  readonly fault?: string
  readonly line?: number
  /** The share of the source that has been read, from 0 to 1; undefined when the size of the source is unknown. */
  readonly share?: number
}

export interface Source {
  readonly what: string
  /**
   * @param signal The iteration ends when this signal is aborted.
   * @throws UsageError when the source cannot be read or is empty, and when its only message is invalid or does not fit the edits.
   */
  items(signal: AbortSignal): AsyncGenerator<Item>
}

interface Copies extends Omit<Changes, 'isCopy'> {
  readonly count: number
}

/**
 * Opens a source: a type, a file, or `-` for stdin.
 *
 * @throws UsageError for a file that cannot be read.
 */
export async function openSource(name: string, copies: Copies): Promise<Source> {
  const type = MESSAGE_TYPES.find((each) => each === name)
  // Only alias calls have `previousId`; delivered alias messages do not.
  if (type) return single(Buffer.from(JSON.stringify({ ...fixtures[type], previousId: undefined })), copies, true)
  if (name === '-') return lines(name, process.stdin, copies)
  const file = await open(name).catch((error) => {
    const near = nearest(name, MESSAGE_TYPES)
    const { message } = cannotRead('SOURCE', name, error)
    throw new UsageError(
      `${message} ${near === undefined ? 'Pass a message type, a file, or - for stdin.' : `Did you mean ${near}?`}`,
    )
  })
  if (/\.(ndjson|jsonl)$/i.test(name)) return lines(name, file, copies)
  await file.close()
  return single(await readInput('SOURCE', name, LIMIT), copies, copies.count > 1)
}

function single(bytes: Buffer, { count, edits, form }: Copies, isCopy: boolean): Source {
  return {
    what: counted(count, 'message'),
    async *items() {
      for (let copy = 1; copy <= count; copy += 1) {
        try {
          yield { prepared: prepare(bytes, { edits, isCopy, form }), share: copy / count }
        } catch (error) {
          throw error instanceof HooklineError
            ? new UsageError(
                `The file must contain a message: ${error.message} To send other JSON, pass --as with a service other than segment.`,
              )
            : error
        }
      }
    },
  }
}

function lines(name: string, input: Readable | FileHandle, { count, edits, form }: Copies): Source {
  return {
    what: `the messages from ${name === '-' ? 'stdin' : name}`,
    async *items(signal) {
      const isFile = 'createReadStream' in input
      const size = isFile ? (await input.stat()).size : 0 // 0 stands for an unknown size; pipes also report 0.
      const stream = isFile ? input.createReadStream() : input
      signal.addEventListener('abort', () => stream.destroy())
      let isEmpty = true
      try {
        for await (const { number: line, bytes, end } of splitLines(stream, LIMIT)) {
          if (bytes?.toString('latin1').trim() === '') continue
          isEmpty = false
          for (let copy = 1; copy <= count; copy += 1) {
            const share = size > 0 ? { share: end / size } : {}
            yield { line, ...share, ...prepareLine(bytes, { edits, isCopy: count > 1, form }) }
          }
        }
      } catch (error) {
        if (!signal.aborted) throw cannotRead('SOURCE', name, error)
      }
      if (isEmpty && !signal.aborted) throw new UsageError('SOURCE is empty. It must have a message on each line.')
    },
  }
}

function prepareLine(bytes: Buffer | undefined, changes: Changes): Pick<Item, 'prepared' | 'fault'> {
  if (bytes === undefined) return { fault: `A line must be at most ${LIMIT} bytes long. This line is longer.` }
  try {
    return { prepared: prepare(bytes, changes) }
  } catch (error) {
    return { fault: (error as Error).message }
  }
}
