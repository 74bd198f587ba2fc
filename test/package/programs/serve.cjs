// The same as serve.mjs, in CommonJS.
const { createServer } = require('node:http')
const { createReceiver } = require('hookline')
const { serve } = require('hookline/node')
const { fixtures, signedRequest } = require('hookline/testing')

const seen = []
const receiver = createReceiver({ secret: 'package-test', batches: true }).on('track', (message) =>
  seen.push(message.event),
)
const server = createServer(serve(receiver, { path: '/webhooks' })).listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}/webhooks`
  const authentic = await fetch(url, signedRequest(fixtures.track, 'package-test'))
  const forged = await fetch(url, signedRequest(fixtures.track, 'another secret'))
  const elsewhere = await fetch(`${url}/elsewhere`, signedRequest(fixtures.track, 'package-test'))
  const batch = await fetch(url, signedRequest([fixtures.track, fixtures.page], 'package-test'))
  const statuses = [authentic, forged, elsewhere, batch].map(({ status }) => status)
  console.log(JSON.stringify({ statuses, seen }))
  server.close()
  server.closeAllConnections()
})
