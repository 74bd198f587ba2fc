/** Responds to a request on a socket as a step of a script says. */

import type { ServerResponse } from 'node:http'
import type { Response } from './script.ts'

/**
 * Answers a request, or ends its connection. Does nothing if the connection has already ended: a function of the script may take longer
 * than the client waits.
 *
 * @param reset Ends the connection with RST.
 * @throws TypeError (as a rejection) for headers that exclude one another.
 */
export async function respond(step: Response, response: ServerResponse, reset: () => void): Promise<void> {
  if (response.destroyed || response.socket?.destroyed) return
  switch (step.kind) {
    case 'answer':
      await sendAnswer(step, response)
      break
    case 'reset':
      if (step.half === undefined) reset()
      else {
        response.writeHead(step.half.status, step.half.headers)
        response.write(step.half.body, reset)
      }
      break
    case 'close':
      response.socket?.destroy()
      break
    case 'garbage':
      response.socket?.end('This is not HTTP.\r\n\r\n')
  }
}

async function sendAnswer(step: Extract<Response, { kind: 'answer' }>, response: ServerResponse): Promise<void> {
  const { answer, delayMs, dripMs } = step
  if (delayMs > 0) await waitWhileOpen(response, delayMs)
  response.writeHead(answer.status, answer.headers)
  if (dripMs === undefined) response.end(answer.body)
  else dripForever(response, dripMs)
}

/** Waits `delayMs` milliseconds. If the connection ends first, clears the timer and never settles the promise. */
function waitWhileOpen(response: ServerResponse, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, delayMs)
    response.on('close', () => clearTimeout(timer))
  })
}

/** Sends a dot every `dripMs` milliseconds in place of a body, until the connection ends. */
function dripForever(response: ServerResponse, dripMs: number): void {
  response.flushHeaders()
  const interval = setInterval(() => response.write('.'), dripMs)
  response.on('close', () => clearInterval(interval))
}
