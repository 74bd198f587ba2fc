/** The debug log ("Go client library", What the service does 6): on while the environment's DEBUG names `analytics`. */

import debug from 'debug'

/** Ask for `enabled` first: arguments cost also when nobody reads them. Never gets the write key or contents of a call. */
export const log: debug.Debugger = debug('analytics')
