/** The endpoint that everything is sent to, a program of its own: reads the body, counts, answers 200. */

import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { answer, answerHeaders, readBare } from '../http/host.ts'
import { listen } from '../http/listen.ts'
import { secret } from '../message.ts'
import { authorization, hangingPath, marker } from './message.ts'

/** What came so far. */
export interface Counts {
  readonly requests: number
  /** In all their bodies. */
  readonly messages: number
  /** Requests that were never answered. */
  readonly hanging: number
  /** Of the requests that were checked, those that are JSON and whose signature is right. */
  readonly signed: number
  /** Of the requests that were checked, those that are JSON and show the write key. */
  readonly authorized: number
}

/** Asks for the counts; and whether requests are checked from now on, which costs the endpoint time. */
export interface CountQuestion {
  readonly isChecking: boolean
}

const counts = { requests: 0, messages: 0, hanging: 0, signed: 0, authorized: 0 }
let isChecking = false

function check(headers: IncomingHttpHeaders, body: Buffer): void {
  JSON.parse(body.toString())
  if (headers['x-signature'] === createHmac('sha1', secret).update(body).digest('hex')) counts.signed += 1
  if (headers.authorization === authorization) counts.authorized += 1
}

const server = createServer((request, response) => {
  if (request.url === hangingPath) {
    counts.hanging += 1
    request.resume()
    return
  }
  readBare(request, (body) => {
    counts.requests += 1
    counts.messages += countMarkers(body)
    if (isChecking) check(request.headers, body)
    response.writeHead(200, answerHeaders).end(answer)
  })
})
process.send?.(await listen(server))

process.on('message', (question: CountQuestion) => {
  isChecking = question.isChecking
  process.send?.(counts)
})
process.on('disconnect', () => process.exit())

function countMarkers(body: Buffer): number {
  let count = 0
  for (let at = body.indexOf(marker); at >= 0; at = body.indexOf(marker, at + marker.length)) count += 1
  return count
}
