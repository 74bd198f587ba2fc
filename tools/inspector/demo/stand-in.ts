/** Runs in the demo before the script of the page: answers what the page asks its API from a recording. */

/** What the API answered. */
export interface Recording {
  /** By the path and query below `api/`: which of the texts. */
  readonly answers: Readonly<Record<string, number>>
  readonly texts: readonly string[]
  /** The beginning of its stream. */
  readonly stream: string
}

/** The page asks for times before now: it stands still, as that of the recording does. */
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
    return new Response(new ReadableStream({ start: begin })) // It never ends, as one that is open.
  }
  const text = texts[answers[path] ?? -1]
  return text === undefined ? refuse(404, 'it has no answer to this question') : new Response(text)
}

function refuse(status: number, so: string): Response {
  const error = `This is a recording: ${so}. Run \`npx hookline demo\` for a page that does it.`
  return Response.json({ error }, { status })
}
