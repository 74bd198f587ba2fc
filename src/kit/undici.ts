/** The undici parts that open connections and send. */

// Imported by its file, because Bun replaces the name `undici` with a stand-in that lacks most of it.
export { buildConnector, Client, Pool } from 'undici/index.js'
