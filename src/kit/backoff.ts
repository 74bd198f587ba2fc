/** How long to wait after a failure: pure policy, numbers in and out. */

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  readonly random?: number
}

export function backoff(failures: number, { firstMs, maxMs, random = 1 }: BackoffOptions): number {
  return Math.round(Math.min(maxMs, firstMs * 2 ** (failures - 1)) * random)
}
