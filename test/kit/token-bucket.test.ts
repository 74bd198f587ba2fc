import { expect, it } from 'vitest'
import { createTokenBucket } from '../../src/kit/token-bucket.ts'

it.each([
  ['ten a second, for 100 ms', createTokenBucket(10), 1, [100, 200]],
  ['100 a second, for 100 ms', createTokenBucket(100), 10, [10, 20]],
  ['ten a second, for a second', createTokenBucket(10, 1_000), 10, [100, 200]],
  ['less than one a second', createTokenBucket(0.5), 1, [2_000, 4_000]],
])('a bucket of %s begins full, holds no more, and fills evenly', (_which, bucket, full, [one = 0, two = 0]) => {
  expect([bucket.count(0), bucket.nextAt(0)]).toEqual([full, 0])
  for (let taken = 0; taken < full + 1; taken++) bucket.take(0)
  expect([bucket.count(0), bucket.nextAt(0)]).toEqual([0, two])
  expect([bucket.count(one), bucket.count(two - 1), bucket.count(two)]).toEqual([0, 0, 1])
  expect(bucket.count(1e9)).toBe(full)
})
