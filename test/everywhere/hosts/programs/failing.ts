/** Loaded before an example: its handler fails for the user `eve`. */

const { log } = console
console.log = (...args) => {
  if (JSON.stringify(args).includes('"eve"')) throw new Error('The disk is full.')
  log(...args)
}
