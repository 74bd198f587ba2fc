/** The parts of undici that open connections and send requests. */

// Imported by its path, because Bun replaces the name `undici` with a stand-in that lacks most of the package.
export { buildConnector, Client, Pool } from 'undici/index.js'
