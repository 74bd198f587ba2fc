import commonjs from '@rollup/plugin-commonjs'
import json from '@rollup/plugin-json'
import { nodeResolve } from '@rollup/plugin-node-resolve'

export default {
  input: 'server.mjs',
  output: { file: 'dist/server.mjs', inlineDynamicImports: true },
  plugins: [nodeResolve({ preferBuiltins: true }), commonjs(), json()],
}
