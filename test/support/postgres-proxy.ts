/** A proxy between a client and PostgreSQL that cuts connections and swallows bytes. */

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export async function createProxy(databaseUrl: string) {
  const sockets = new Set<Socket>()
  let fatal: string | undefined
  let isSwallowing = false
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const to = new URL(databaseUrl)

  const server = createServer((client) => {
    const database = connect(Number(to.port || 5432), to.hostname)
    let isCut = false
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        database.destroy()
      })
    }
    client.on('data', (data) => {
      if (isSwallowing) return
      if (fatal !== undefined && data.includes(fatal)) {
        isCut = true
        fatal = undefined
      }
      database.write(data)
    })
    database.on('data', (data) => {
      if (isCut) client.destroy()
      else if (!isSwallowing) client.write(data)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const through = new URL(databaseUrl)
  through.host = `127.0.0.1:${(server.address() as { port: number }).port}`
  return {
    url: through.href,
    cut,
    /** Lets a statement that holds this text through, and cuts the connection before its answer. */
    cutAfter(text: string) {
      fatal = text
    },
    /** Swallows all bytes both ways until it is called with false. */
    swallow(swallowing: boolean) {
      isSwallowing = swallowing
    },
    /** Resolves when a client has connected. */
    accepted: () => once(server, 'connection'),
    async close(): Promise<void> {
      const closed = new Promise((resolve) => server.close(resolve))
      cut()
      await closed
    },
  }
}
