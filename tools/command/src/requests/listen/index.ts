/** `hookline listen`: an endpoint for development that shows, stores, forwards and refuses requests. */

import { once } from 'node:events'
import { existsSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Command } from 'commander'
import { explainError } from '../../../../../src/internals.ts'
import {
  address,
  addSecretOptions,
  findSecret,
  isLoopback,
  listenOn,
  type SecretOptions,
  whole,
} from '../../arguments.ts'
import { addStoreOption, createStore, MAX_BYTES, MAX_REQUESTS } from '../../request-store.ts'
import { counted, interruption, note, print, UsageError } from '../../terminal.ts'
import type { KeptRequest } from '../kept-request.ts'
import { lineOf } from '../list.ts'
import { createEndpoint, type FailScript, failScript } from './endpoint.ts'
import { createFindReason } from './reasons.ts'

interface Options extends SecretOptions {
  readonly port: number
  readonly host: string
  readonly forward?: URL
  readonly store: string
  readonly fail?: FailScript
  readonly ui?: number | true
}

export function define(command: Command): void {
  command
    .option('--port <number>', 'the port; 0 for a free one', whole(0, 65_535), 4000)
    .option(
      '--host <address>',
      'the address to listen on; 0.0.0.0 accepts connections from other machines',
      '127.0.0.1',
    )
    .option(
      '--forward <url>',
      'forward each request, and return the answer; a URL without a path keeps each path',
      address,
    )
    .option('--fail <script>', 'what happens to the first requests: 3x500,1xtimeout,2xreset,1xslow:3000', failScript)
    .option(
      '--ui [port]',
      'show the requests on a page, on a port of this machine. Default: a free port',
      whole(0, 65_535),
    )
    .action(listen)
  addSecretOptions(addStoreOption(command)).addHelpText('after', HELP)
}

const HELP = `
Without a secret, nothing is verified. The newest ${MAX_REQUESTS} requests are stored, up to ${MAX_BYTES / 1e6} MB in total.
Exit codes: 0 ended by Ctrl-C, 2 wrong usage.

Examples:
  hookline listen --secret-file secret.txt
      Shows the requests that arrive on port 4000, and why a signature does not match.
  hookline listen --ui
      Also shows the requests on a page.
  hookline listen --forward http://localhost:3000/webhooks
      Forwards the requests to your endpoint.
  hookline listen --port 4001 --fail 3x500,1xtimeout
      Shows how a sender retries.`

async function listen({ port, host, forward, store: path, fail, ui, ...secrets }: Options): Promise<void> {
  const secret = await findSecret(secrets)
  if (host === '')
    throw new UsageError('--host is empty. Pass an address, or omit the option to listen on this machine only.')
  if (forward?.protocol === 'http:' && isLoopback(forward) && Number(forward.port || 80) === port) {
    throw new UsageError(
      `--forward must not lead to this endpoint on port ${port}. Pass another URL, or another --port.`,
    )
  }
  const screen = createScreen(process.stdout.isTTY)
  let store = createStore(path)
  let url: string | undefined
  const closeStore = (error: unknown): never => {
    store.close()
    throw error
  }
  const page =
    ui === undefined
      ? undefined
      : await (await import('./page.ts')).showRequests(ui, path, secret, () => url).catch(closeStore)
  const verifier = secret === undefined ? undefined : { secret, findReason: createFindReason(secret) }
  const forwarder = forward && (await import('../forward.ts')).createForwarder(forward)
  const count = { verified: 0, mismatched: 0, unchecked: 0, lost: 0 }
  const { server, settled } = createEndpoint({
    verifier,
    script: fail,
    forwarder,
    keep(request) {
      count[request.verification] += 1
      try {
        if (!existsSync(path)) {
          store.close() // The file was removed, so anything written to this store would be lost.
          store = createStore(path)
        }
        store.append(request)
      } catch (error) {
        if (count.lost === 0) note(`Requests are not stored. ${explainError(error)}`)
        count.lost += 1
      }
      screen.show(lineOf(request))
      page?.append(request)
    },
  })
  const interrupted = interruption()
  noteFaults(server)
  const listening = await listenOn('--port', server, port, host).catch(async (error: unknown) => {
    await page?.close()
    return closeStore(error)
  })
  url = listening.origin
  const reach = isLoopback(new URL(url)) ? '' : 'Other machines can reach it. '
  const target = forward && `Forwarding to ${forward.origin}${forward.pathname}. `
  note(
    `Listening on ${url}, storing requests in ${path}. ${reach}${target ?? ''}${verifier ? '' : UNVERIFIED}Press Ctrl-C to stop.`,
  )

  if (!interrupted.aborted) await once(interrupted, 'abort')
  await listening.close()
  await settled()
  await forwarder?.close()
  store.close()
  await page?.close()
  screen.close()
  note(summaryOf(count, screen.leftOut))
}

const UNVERIFIED = 'Signatures are not verified: no secret was passed. '

/** Answers 400 to data that is not HTTP, and reports such data at most once a second. */
function noteFaults(server: Server): void {
  let last = Number.NEGATIVE_INFINITY
  server.on('clientError', ({ code = '', rawPacket }: ClientError, socket) => {
    if (!socket.writable || /^(ECONNRESET|EPIPE|HPE_INVALID_EOF_STATE)$/.test(code)) return void socket.destroy()
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
    if (performance.now() - last < 1_000) return
    last = performance.now()
    const advice =
      rawPacket?.[0] === TLS_HANDSHAKE ? ' The sender uses https: give it a URL that begins with http://.' : ''
    note(`A connection was closed before a complete HTTP request arrived (${code}).${advice}`)
  })
}

type ClientError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer }

const TLS_HANDSHAKE = 0x16

function summaryOf(count: Readonly<Record<KeptRequest['verification'] | 'lost', number>>, leftOut: number): string {
  const { verified, mismatched, unchecked, lost } = count
  const came = verified + mismatched + unchecked
  const parts = [
    `${counted(came, 'request')} received`,
    ...(verified + mismatched > 0 ? [`${verified} verified`, `${mismatched} not verified`] : []),
    ...(leftOut > 0 ? [`${leftOut} lines omitted`] : []),
    ...(lost > 0 ? [`${lost} not stored`] : []),
  ]
  return `${parts.join(', ')}.`
}

/** The maximum number of lines to print on a terminal per second, which is more than a user can read. */
const LINES_A_SECOND = 100

function createScreen(isTerminal: boolean) {
  let [shown, missing, leftOut] = [0, 0, 0]
  let second: NodeJS.Timeout | undefined

  function endSecond(): void {
    clearTimeout(second)
    second = undefined
    if (missing > 0) note(`… ${missing} lines omitted: run \`hookline list\` to see the requests`)
    leftOut += missing
    ;[shown, missing] = [0, 0]
  }

  return {
    show(line: string): void {
      if (isTerminal) second ??= setTimeout(endSecond, 1_000)
      if (isTerminal && shown === LINES_A_SECOND) missing += 1
      else {
        shown += 1
        print(line)
      }
    },
    get leftOut(): number {
      return leftOut
    },
    close: endSecond,
  }
}
