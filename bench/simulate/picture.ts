/** Draws a simulated day as SVG: messages a second, messages that wait, memory; legible on light and dark pages. */

import { CAPACITY, type Day, HOUR } from './days.ts'
import type { Sample } from './world.ts'

const WIDTH = 960
const LEFT = 74
const RIGHT = 26
const TOP = 124
const PLOT = WIDTH - LEFT - RIGHT
const HEIGHT = 132
const GAP = 46

/** A picture follows the system, not the page: it brings its own background. */
const STYLE = `
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#57606a}
.title{font-size:19px;font-weight:600;fill:#1b1f24}.name{font-size:14px;font-weight:600;fill:#1b1f24}
.label{fill:#9a3412;text-anchor:middle;font-size:11.5px}.end{text-anchor:end}.middle{text-anchor:middle}
.page{fill:#fff;stroke:#d0d7de}.down{fill:#ea580c;fill-opacity:.13}.grid{stroke:#d0d7de;stroke-width:1}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.posts,.waiting{stroke:#3451b2}.delivered{stroke:#15803d}.arrivals{stroke:#8c959f;stroke-dasharray:5 4}.memory{stroke:#8250df}
.area{stroke:none;fill:#3451b2;fill-opacity:.16}.area.memory{fill:#8250df}
@media(prefers-color-scheme:dark){
text{fill:#9da7b3}.title,.name{fill:#e6edf3}.label{fill:#fdba74}.page{fill:#0d1117;stroke:#30363d}.grid{stroke:#30363d}
.down{fill:#fb923c;fill-opacity:.17}.posts,.waiting{stroke:#a8b1ff}.delivered{stroke:#4ade80}.arrivals{stroke:#9da7b3}.memory{stroke:#d2a8ff}
.area{fill:#a8b1ff}.area.memory{fill:#d2a8ff}}
`

interface Line {
  readonly className: string
  /** At each sample. */
  readonly values: readonly number[]
}

/** Draws the day of these samples. */
export function drawDay(samples: readonly Sample[], { hours, episodes }: Day, perSecond: number): string {
  const x = (ms: number): number => LEFT + (ms / (hours * HOUR)) * PLOT
  const times = samples.map(({ at }) => x(at))
  const perSecondOf = (read: (sample: Sample) => number): number[] =>
    samples.map((sample, index) => {
      const before = samples[index - 1] ?? sample
      return ((read(sample) - read(before)) * 1_000) / Math.max(1, sample.at - before.at)
    })
  const charts = [
    drawChart(times, 0, 'messages a second', [
      { className: 'posts', values: perSecondOf(({ posts }) => posts) },
      { className: 'delivered', values: perSecondOf(({ delivered }) => delivered) },
      { className: 'arrivals', values: perSecondOf(({ arrived }) => arrived) },
    ]),
    drawChart(times, 1, 'messages that wait', [
      { className: 'waiting', values: samples.map(({ waiting }) => waiting) },
    ]),
    drawChart(times, 2, 'memory of the process, MB', [{ className: 'memory', values: samples.map(({ mb }) => mb) }]),
  ]
  const bottom = TOP + 3 * HEIGHT + 2 * GAP
  const bands = episodes.map(({ from, to, name }) => {
    const width = Math.max(2, x(to) - x(from))
    return `<rect class="down" x="${fixed(x(from))}" y="${TOP - 26}" width="${fixed(width)}" height="${bottom - TOP + 26}"><title>${name}</title></rect>`
  })
  const labels = episodes.map(({ from, to, label }) => {
    return `<text class="label" x="${fixed(x((from + to) / 2))}" y="${TOP - 32}">${label}</text>`
  })
  const clock = Array.from({ length: hours / 3 + 1 }, (_, index) => {
    return `<text class="middle" x="${fixed(x(3 * index * HOUR))}" y="${bottom + 20}">${3 * index}:00</text>`
  })
  const height = bottom + 36
  const title = `A day of a destination at ${perSecond} messages a second`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">
<style>${STYLE.trim()}</style>
<rect class="page" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="10"/>
<text class="title" x="${LEFT}" y="36">${title}</text>
${drawLegend()}
${[...bands, ...labels, ...charts, ...clock].join('\n')}
</svg>
`
}

function drawLegend(): string {
  const entries = [
    ['arrivals', 'arrive'],
    ['posts', 'posted'],
    ['delivered', `delivered; the endpoint takes at most ${CAPACITY}`],
  ] as const
  const lengths = [0, 96, 196]
  const drawn = entries.map(([className, text], index) => {
    const at = LEFT + (lengths[index] ?? 0)
    return `<path class="line ${className}" d="M${at} 58h26"/><text x="${at + 33}" y="62">${text}</text>`
  })
  const at = LEFT + 520
  return `${drawn.join('')}<rect class="down" x="${at}" y="49" width="26" height="16"/><text x="${at + 33}" y="62">the endpoint is down, or as it says</text>`
}

/** One of the charts, from the top: its lines share a scale from 0. The first is filled below. */
function drawChart(times: readonly number[], place: number, name: string, lines: readonly Line[]): string {
  const top = TOP + place * (HEIGHT + GAP)
  const step = niceStep(Math.max(1e-9, ...lines.flatMap(({ values }) => values)) / 3)
  const most = step * Math.ceil(Math.max(...lines.flatMap(({ values }) => values)) / step - 0.05)
  const y = (value: number): number => top + HEIGHT - (value / most) * HEIGHT
  const grid = Array.from({ length: Math.round(most / step) + 1 }, (_, index) => {
    const [at, text] = [fixed(y(index * step)), shorten(index * step)]
    return `<path class="grid" d="M${LEFT} ${at}h${PLOT}"/><text class="end" x="${LEFT - 8}" y="${Number(at) + 4}">${text}</text>`
  })
  const drawn = lines.map(({ className, values }, index) => {
    const points = thin(values.map((value, at) => [times[at] as number, y(value)] as const))
    const d = points.map(([px, py]) => `${fixed(px)} ${fixed(py)}`).join('L')
    const area = `<path class="area ${className}" d="M${LEFT} ${top + HEIGHT}L${d}V${top + HEIGHT}Z"/>`
    return `${index === 0 ? area : ''}<path class="line ${className}" d="M${d}"/>`
  })
  return [`<text class="name" x="${LEFT + 8}" y="${top - 10}">${name}</text>`, ...grid, ...drawn].join('\n')
}

/** 1, 2, 2.5 or 5 times a power of ten, at least as much. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least))
  return power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= least) as number)
}

/** Leaves out points that lie on the line between their neighbours, to a third of a pixel. */
function thin(points: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  return points.filter(([x, y], index) => {
    const [before, after] = [points[index - 1], points[index + 1]]
    if (before === undefined || after === undefined) return true
    const between = before[1] + ((after[1] - before[1]) * (x - before[0])) / (after[0] - before[0])
    return Math.abs(between - y) > 0.05
  })
}

function fixed(value: number): string {
  return String(Number(value.toFixed(1)))
}

function shorten(value: number): string {
  if (value >= 1e6) return `${value / 1e6} M`
  return value >= 10_000 ? `${value / 1e3} k` : String(value)
}
