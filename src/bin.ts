#!/usr/bin/env node

/** The program `hookline`. */

import { endQuietly, hideExperimentalWarnings } from './cli/terminal.ts'
import { run } from './cli.ts'

endQuietly()
hideExperimentalWarnings()
await run(process.argv.slice(2))
