/** Plays a step of a script as the answer to a request on a socket. */

import type { ServerResponse } from 'node:http'
import type { Move } from './script.ts'

/**
 * Answers, or fails to. Leaves a connection alone that has ended: a function of the script may take longer than a client.
 *
 * @param reset Ends the connection with RST.
 * @throws TypeError (as a rejection) for headers that do not go together.
 */
export async function play(move: Move, response: ServerResponse, reset: () => void): Promise<void> {
  if (response.destroyed || response.socket?.destroyed) return
  switch (move.kind) {
    case 'answer':
      await playAnswer(move, response)
      break
    case 'reset':
      if (move.half === undefined) reset()
      else {
        response.writeHead(move.half.status, move.half.headers)
        response.write(move.half.body, reset)
      }
      break
    case 'close':
      response.socket?.destroy()
      break
    case 'garbage':
      response.socket?.end('This is not HTTP.\r\n\r\n')
  }
}

async function playAnswer(move: Extract<Move, { kind: 'answer' }>, response: ServerResponse): Promise<void> {
  const { answer, delayMs, dripMs } = move
  if (delayMs > 0) await wait(response, delayMs)
  response.writeHead(answer.status, answer.headers)
  if (dripMs === undefined) response.end(answer.body)
  else drip(response, dripMs)
}

/** When the connection ends before that, the answer is never written, and no timer is left. */
function wait(response: ServerResponse, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, delayMs)
    response.on('close', () => clearTimeout(timer))
  })
}

function drip(response: ServerResponse, dripMs: number): void {
  response.flushHeaders()
  const interval = setInterval(() => response.write('.'), dripMs)
  response.on('close', () => clearInterval(interval))
}
