#!/usr/bin/env node

/** Runs the program `hookline`. */

import { runCommand } from './command.ts'
import { endQuietly, hideExperimentalWarnings } from './terminal.ts'

endQuietly()
hideExperimentalWarnings()
await runCommand(process.argv.slice(2))
