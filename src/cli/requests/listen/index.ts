/** `hookline listen`: an endpoint for development, which shows, keeps, passes on and refuses requests. */

import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Command } from 'commander'
import {
  addExamples,
  address,
  addSecretOptions,
  findSecret,
  isLoopback,
  type SecretOptions,
  whole,
} from '../../arguments.ts'
import { interruption, note, UsageError } from '../../terminal.ts'
import type { KeptRequest } from '../kept.ts'
import { lineOf } from '../line.ts'
import { addStoreOption } from '../open-store.ts'
import { createPassage } from '../pass-on.ts'
import { MOST_BYTES, MOST_REQUESTS } from '../store.ts'
import { createEndpoint } from './endpoint.ts'
import { type FailScript, failScript } from './fail-script.ts'
import { createKeeper } from './keeper.ts'
import { createReasons } from './reasons.ts'
import { createScreen } from './screen.ts'

interface Options extends SecretOptions {
  readonly port: number
  readonly host: string
  readonly forward?: URL
  readonly store: string
  readonly fail?: FailScript
  readonly ui?: number | true
}

/** Declares the subcommand. */
export function define(command: Command): void {
  command
    .option('--port <number>', 'the port; 0 takes a free one', whole(0, 65_535), 4000)
    .option('--host <address>', 'the address to listen on; 0.0.0.0 lets other machines in', '127.0.0.1')
    .option(
      '--forward <url>',
      'pass each request on, and answer what that endpoint answers; without a path, keep each path',
      address,
    )
    .option('--fail <script>', 'what happens to the first requests: 3x500,1xtimeout,2xreset,1xslow:3000', failScript)
    .option('--ui [port]', 'show the requests on a page of this machine. Default: a free port', whole(0, 65_535))
    .action(listen)
  addSecretOptions(addStoreOption(command))
  command.addHelpText(
    'after',
    `\nWithout a secret, nothing is verified. The newest ${MOST_REQUESTS} requests are kept, and at most ${MOST_BYTES / 1e6} MB of them.`,
  )
  command.addHelpText('after', '\nExit codes: 0 ended by Ctrl-C, 2 wrong usage.')
  addExamples(command, [
    ['hookline listen --secret-file secret.txt', 'Shows what comes to port 4000, and why a signature does not match.'],
    ['hookline listen --ui', 'Shows what comes on a page, too.'],
    ['hookline listen --forward http://localhost:3000/webhooks', 'Passes what comes on to your endpoint.'],
    ['hookline listen --port 4001 --fail 3x500,1xtimeout', 'Shows how a sender retries.'],
  ])
}

async function listen({ port, host, forward, store, fail, ui, ...secrets }: Options): Promise<void> {
  const secret = findSecret(secrets)
  if (host === '')
    throw new UsageError('--host is empty. Pass an address, or leave it out to listen on this machine only.')
  if (forward?.protocol === 'http:' && isOwn(forward) && Number(forward.port || 80) === port) {
    throw new UsageError(
      `--forward must be another endpoint than this one, at port ${port}. Pass its URL, or another --port.`,
    )
  }
  const screen = createScreen(process.stdout.isTTY)
  const keeper = createKeeper(store, (requests) => {
    screen.show(requests.map((request) => lineOf(request)))
    for (const request of requests) page?.add(request)
  })
  const page = ui === undefined ? undefined : await (await import('./page.ts')).showRequests(ui, store, secret)
  const verifier = secret === undefined ? undefined : { secret, reasons: createReasons(secret) }
  const passage = forward && createPassage(forward)
  const count = { verified: 0, mismatched: 0, unchecked: 0 }
  const { server, settled } = createEndpoint({
    verifier,
    script: fail,
    passage,
    keep(request) {
      count[request.verification] += 1
      keeper.add(request)
    },
  })
  const interrupted = interruption()
  const url = await start(server, port, host).catch(async (error: unknown) => {
    await page?.close()
    throw error
  })
  const reach = isLoopback(new URL(url)) ? '' : 'Other machines can reach it. '
  const target = forward && `Passing on to ${forward.origin}${forward.pathname}. `
  note(
    `Listening on ${url}, keeping requests in ${store}. ${reach}${target ?? ''}${verifier ? '' : UNVERIFIED}Ctrl-C ends.`,
  )

  if (!interrupted.aborted) await once(interrupted, 'abort')
  server.close()
  server.closeAllConnections()
  await verifier?.reasons.close()
  await settled()
  await passage?.close()
  keeper.close()
  await page?.close()
  screen.close()
  note(summaryOf(count, screen.leftOut, keeper.lost))
}

/** Whether it is this machine: requests to no address in particular come here too. */
function isOwn(url: URL): boolean {
  return isLoopback(url) || /^(0\.0\.0\.0|\[::(ffff:7f[0-9a-f:]+)?\])$/.test(url.hostname)
}

const UNVERIFIED = 'Nothing is verified: no secret was passed. '

/** Starts the server. @throws UsageError (as a rejection) for an address that cannot be listened on. */
async function start(server: Server, port: number, host: string): Promise<string> {
  noteFaults(server)
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const where = `port ${port} of ${host}`
    if (code === 'EADDRINUSE')
      throw new UsageError(`--port must be free. Got ${where}, which is in use. Pass another one.`)
    throw new UsageError(`This process cannot listen on ${where}. Got ${message}. Pass another --port or --host.`)
  }
  const { family, address, port: taken } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`
}

/** Notes what is no request, which has no line: at most once a second. */
function noteFaults(server: Server): void {
  let last = Number.NEGATIVE_INFINITY
  server.on('clientError', ({ code = '', rawPacket }: ClientError, socket) => {
    if (!socket.writable || /^(ECONNRESET|EPIPE|HPE_INVALID_EOF_STATE)$/.test(code)) return void socket.destroy()
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
    if (performance.now() - last < 1_000) return
    last = performance.now()
    const advice = rawPacket?.[0] === TLS_HANDSHAKE ? ' The sender uses https: give it the URL with http.' : ''
    note(`A connection was closed: no complete HTTP request came (${code}).${advice}`)
  })
}

type ClientError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer }

const TLS_HANDSHAKE = 0x16

function summaryOf(
  count: Readonly<Record<KeptRequest['verification'], number>>,
  leftOut: number,
  lost: number,
): string {
  const { verified, mismatched, unchecked } = count
  const came = verified + mismatched + unchecked
  const parts = [
    `${came} ${came === 1 ? 'request' : 'requests'} came`,
    ...(verified + mismatched > 0 ? [`${verified} verified`, `${mismatched} not`] : []),
    ...(leftOut > 0 ? [`${leftOut} lines left out`] : []),
    ...(lost > 0 ? [`${lost} not kept`] : []),
  ]
  return `${parts.join(', ')}.`
}
