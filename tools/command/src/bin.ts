#!/usr/bin/env node

/** The program `hookline`. */

import { run } from './command.ts'
import { endQuietly, hideExperimentalWarnings } from './terminal.ts'

endQuietly()
hideExperimentalWarnings()
await run(process.argv.slice(2))
