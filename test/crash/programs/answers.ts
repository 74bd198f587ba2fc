/** The messages between a program of the crash tests and its test. */

import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export function readSettings<Settings>(): Settings {
  return JSON.parse(process.argv[2] ?? '') as Settings
}

/** Answers questions by their name. Ends the process when the test ends. */
export function answerQuestions(answers: Readonly<Record<string, () => unknown>>): void {
  process.on('disconnect', () => process.exit())
  process.on('message', async (question: string) => {
    process.send?.((await answers[question]?.()) ?? null)
  })
}

export function sayReady(message = ''): void {
  process.send?.(message)
}

export function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })
}
