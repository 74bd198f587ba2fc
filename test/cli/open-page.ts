/** The page that the command serves with `--ui`, as a browser asks for it. */

import type { Row, StreamEvents } from '../../src/inspector/wire.ts'
import { until } from '../support/until.ts'
import { type Running, start } from './command.ts'

export async function openPage(args: readonly string[], running?: Running) {
  const { child, printed, ended } = await start(args, running)
  await until(() => /token=\S+\n/.test(printed.stderr))
  const [url = ''] = /http\S+token=\S+/.exec(printed.stderr) ?? []
  const signedIn = await fetch(url, { redirect: 'manual' })
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
  const at = (path: string) => new URL(`api/${path}`, url)

  return {
    url,
    printed,
    get: async <Answer>(path: string) => (await (await fetch(at(path), { headers: { cookie } })).json()) as Answer,
    async post(path: string, body: unknown) {
      const headers = { cookie, 'content-type': 'application/json', 'x-hookline-inspector': '1' }
      return await (await fetch(at(path), { method: 'POST', headers, body: JSON.stringify(body) })).json()
    },
    /** The newest first, once they are so many. */
    async rows(count: number): Promise<readonly Row[]> {
      const { body } = await fetch(at('stream'), { headers: { cookie } })
      const found = new Map<number, Row>()
      let text = ''
      for await (const chunk of body ?? []) {
        text += Buffer.from(chunk).toString()
        for (const [, data = ''] of text.matchAll(/^event: rows\n(?:id: .*\n)?data: (.*)$/gm)) {
          for (const row of (JSON.parse(data) as StreamEvents['rows']).rows) found.set(row.id, row)
        }
        if (found.size >= count) break
      }
      return [...found.values()].sort((one, other) => other.id - one.id)
    },
    end() {
      child.kill('SIGINT')
      return ended
    },
  }
}
