/** Plays a step of a script as the answer to a request on a socket. */

import type { ServerResponse } from 'node:http'
import { HALF_ANSWER, type Move } from './script.ts'

/**
 * Answers, or fails to.
 *
 * @param reset Ends the connection with RST.
 */
export function play(move: Move, response: ServerResponse, reset: () => void): void {
  switch (move.kind) {
    case 'answer':
      playAnswer(move, response)
      break
    case 'reset':
      if (move.after === 'answer') {
        response.writeHead(HALF_ANSWER.status, HALF_ANSWER.headers)
        response.write(HALF_ANSWER.body, reset)
      } else reset()
      break
    case 'close':
      response.socket?.destroy()
      break
    case 'garbage':
      response.socket?.end('This is not HTTP.\r\n\r\n')
  }
}

function playAnswer({ answer, delayMs, dripMs }: Extract<Move, { kind: 'answer' }>, response: ServerResponse): void {
  const timer = setTimeout(() => {
    response.writeHead(answer.status, answer.headers)
    if (dripMs === undefined) response.end(answer.body)
    else drip(response, dripMs)
  }, delayMs)
  response.on('close', () => clearTimeout(timer))
}

function drip(response: ServerResponse, dripMs: number): void {
  response.flushHeaders()
  const interval = setInterval(() => response.write('.'), dripMs)
  response.on('close', () => clearInterval(interval))
}
