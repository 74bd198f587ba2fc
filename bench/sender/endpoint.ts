/** The endpoint that everything is sent to, a program of its own: reads the body, counts, answers 200. */

import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { answerBody, answerHeaders, listen, readBare } from '../http/host.ts'
import { authorization, hangingPath, marker, secret } from '../message.ts'

/** What came so far. */
export interface Counts {
  readonly requests: number
  /** In all their bodies. */
  readonly messages: number
  /** Of the requests that were checked, those that are JSON and show the right signature, or the write key. */
  readonly proven: number
}

/** Asks for the counts; and whether requests are checked from now on, which costs the endpoint time. */
export interface CountQuestion {
  readonly isChecking: boolean
}

const counts = { requests: 0, messages: 0, proven: 0 }
let isChecking = false

const server = createServer((request, response) => {
  if (request.url === hangingPath) return void request.resume()
  readBare(request, (body) => {
    counts.requests += 1
    counts.messages += countMarkers(body)
    if (isChecking && isProven(request.headers, body)) counts.proven += 1
    response.writeHead(200, answerHeaders).end(answerBody)
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

function isProven(headers: IncomingHttpHeaders, body: Buffer): boolean {
  JSON.parse(body.toString())
  const signature = createHmac('sha1', secret).update(body).digest('hex')
  return headers['x-signature'] === signature || headers.authorization === authorization
}
