/** Histograms of seconds, with the buckets that the semantic conventions ask for. */

import type { MetricOptions } from '@opentelemetry/api'

/** Unit and buckets. */
export const SECONDS: MetricOptions = {
  unit: 's',
  advice: { explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] },
}
