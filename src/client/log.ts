/** The debug log ("Go client library", What the service does 6): on while the environment's DEBUG names `analytics`. */

import debug from 'debug'

/** Check `enabled` first: computing arguments costs also while it is off. Never pass the write key or contents of a call. */
export const log: debug.Debugger = debug('analytics')
