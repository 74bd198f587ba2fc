/** Runs in the demo before the script of the page: answers the requests of the page from a recording. */

/** The recorded answers of the API. */
export interface Recording {
  /** The index of each answer in `texts`, keyed by the path and query of the request, without `api/`. */
  readonly answers: Readonly<Record<string, number>>
  readonly texts: readonly string[]
  /** The first events of the stream. */
  readonly stream: string
}

/** Stops the clock of the page. The page requests times relative to now, and the recording has answers for a single moment. */
const openedAt = Date.now()
Date.now = () => openedAt

const network = globalThis.fetch
const recording: Promise<Recording> = network('recording.json').then(
  (response) => response.json() as Promise<Recording>,
)

globalThis.fetch = async (input, init) => {
  const { answers, texts, stream } = await recording
  const path = String(input)
    .replace(/^api\//, '')
    .replace(/\?$/, '')
  if (init?.method === 'POST') return refuse(403, 'nothing was sent or changed')
  if (path === 'stream') {
    const begin = (controller: ReadableStreamDefaultController): void =>
      controller.enqueue(new TextEncoder().encode(stream))
    return new Response(new ReadableStream({ start: begin })) // The stream stays open.
  }
  const text = texts[answers[path] ?? -1]
  return text === undefined ? refuse(404, 'it has no answer to this request') : new Response(text)
}

function refuse(status: number, so: string): Response {
  const error = `This is a recording: ${so}. Run \`npx hookline demo\` for a page that is live.`
  return Response.json({ error }, { status })
}
