import { resolve } from 'node:path'

export default {
  entry: './server.mjs',
  target: 'node',
  mode: 'production',
  experiments: { outputModule: true },
  output: { path: resolve('dist'), filename: 'server.mjs', module: true },
}
