/** The packed tarball on the Node that runs this; `npm run test:package` has the others, and the types. */

import { testPackage } from './package/suite.ts'

const [major = ''] = process.versions.node.split('.')
testPackage(major, async () => process.execPath)
