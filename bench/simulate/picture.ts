/** Draws a simulated day: messages that wait, and posts, as SVG. */

import type { Episode } from './run.ts'
import type { Sample } from './world.ts'

const WIDTH = 960
const HEIGHT = 160
const LEFT = 70
const GAP = 50
const DAY_MS = 24 * 3_600_000

export function drawDay(samples: readonly Sample[], episodes: readonly Episode[]): string {
  const posts = samples.map(({ at, posts }, index) => ({ at, value: (posts - (samples[index - 1]?.posts ?? 0)) / 60 }))
  const arrivals = samples.map(({ at, arrived }, index) => {
    return { at, value: (arrived - (samples[index - 1]?.arrived ?? 0)) / 60 }
  })
  const waiting = samples.map(({ at, waiting: value }) => ({ at, value }))
  const height = 2 * HEIGHT + 2 * GAP
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${LEFT + WIDTH + 10} ${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${chart(20, 'messages waiting', [[waiting, '#1f6feb']], episodes)}
${chart(
  20 + HEIGHT + GAP,
  'arrivals (grey) and posts (red) a second',
  [
    [arrivals, '#999'],
    [posts, '#d1242f'],
  ],
  episodes,
)}
</svg>
`
}

type Points = readonly { readonly at: number; readonly value: number }[]

function chart(
  top: number,
  title: string,
  lines: readonly (readonly [Points, string])[],
  episodes: readonly Episode[],
): string {
  const most = Math.max(1, ...lines.flatMap(([points]) => points.map(({ value }) => value)))
  const x = (ms: number): string => (LEFT + (ms / DAY_MS) * WIDTH).toFixed(1)
  const y = (value: number): string => (top + HEIGHT - (value / most) * (HEIGHT - 10)).toFixed(1)
  const bands = episodes.map(({ name, from, to }) => {
    const width = Math.max(2, ((to - from) / DAY_MS) * WIDTH).toFixed(1)
    return `<rect x="${x(from)}" y="${top}" width="${width}" height="${HEIGHT}" fill="#f6d5d5"><title>${name}</title></rect>`
  })
  const hours = [0, 3, 6, 9, 12, 15, 18, 21, 24].map((hour) => {
    return `<text x="${x(hour * 3_600_000)}" y="${top + HEIGHT + 15}" text-anchor="middle">${hour} h</text>`
  })
  const paths = lines.map(([points, colour]) => {
    const path = points.map(({ at, value }) => `${x(at)},${y(value)}`).join(' ')
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="1.2"/>`
  })
  return [
    ...bands,
    `<text x="${LEFT}" y="${top - 6}">${title}</text>`,
    `<text x="${LEFT - 6}" y="${top + 12}" text-anchor="end">${Math.round(most).toLocaleString('en')}</text>`,
    `<text x="${LEFT - 6}" y="${top + HEIGHT}" text-anchor="end">0</text>`,
    ...hours,
    ...paths,
  ].join('\n')
}
