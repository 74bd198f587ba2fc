import { expect, it } from 'vitest'
import { createTokenBucket } from '../../src/kit/token-bucket.ts'

it('a bucket begins with the tokens of its time, but at least one', () => {
  const buckets = [createTokenBucket(5), createTokenBucket(100), createTokenBucket(10, 1_000)]
  expect(buckets.map(({ count }) => count(0))).toEqual([1, 10, 10])
})
