/** The packed tarball on every Node that is supported. */

import { describe } from 'vitest'
import { installNode } from './node.ts'
import { testPackage } from './suite.ts'

describe.each(['22', '24', '26'])('Node %s', (version) => {
  testPackage(version, () => installNode(version))
})
