/** What the endpoints of the soak go through: the outages of the simulated day, as long as shares of the run. */

/** What an endpoint does to a post. `cut` takes the message and ends the connection; `gone` refuses connections. */
export type Behaviour = 'up' | '503' | 'hangs' | 'gone' | 'slow' | 'cut'

/** A part of the run. */
export interface Phase {
  readonly name: string
  /** Of the run, from 0 to 1. */
  readonly share: number
  readonly behaviour: Behaviour
  /** Whether it is down and up in turns, 5 seconds each. Default false. */
  readonly isFlapping?: boolean
  /** How many URLs the destination has; the last one behaves so. Default 1. */
  readonly urls?: number
  /** Whether nothing is delivered in it, so that posts are to be few. Default false. */
  readonly isOutage?: boolean
}

const up = (share: number, urls = 1): Phase => ({ name: 'up', share, behaviour: 'up', urls })

export const PHASES: readonly Phase[] = [
  up(0.08),
  { name: '503', share: 0.3, behaviour: '503', isOutage: true },
  up(0.1),
  { name: 'hangs', share: 0.08, behaviour: 'hangs', isOutage: true },
  up(0.06),
  { name: 'refuses connections', share: 0.08, behaviour: 'gone', isOutage: true },
  up(0.05),
  { name: '503 and up, 5 s each', share: 0.07, behaviour: '503', isFlapping: true },
  up(0.03),
  { name: 'answers after 3 s', share: 0.03, behaviour: 'slow' },
  up(0.03),
  { name: 'takes and cuts the connection', share: 0.02, behaviour: 'cut' },
  { name: 'one of three: 503', share: 0.05, behaviour: '503', urls: 3 },
  up(0.02, 3),
]
