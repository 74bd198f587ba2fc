/** The parts of undici that open connections and send. */

// By its file: Bun replaces the name `undici` by a stand-in that lacks most of it.
export { buildConnector, Client, Pool } from 'undici/index.js'
