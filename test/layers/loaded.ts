/** Run as a program: imports the module it is given and prints the address of every module that this loaded. */

import { registerHooks } from 'node:module'

const loaded = new Set<string>()
registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context)
    loaded.add(resolved.url)
    return resolved
  },
})
const before = new Set(readBuiltins())
await import(process.argv[2] ?? '')
const builtins = readBuiltins().filter((name) => !before.has(name))

console.log(JSON.stringify([...loaded, ...builtins]))

/** What Node loads on its own account never passes the hooks; it lists that under names like `NativeModule http`. */
function readBuiltins(): string[] {
  return [...Reflect.get(process, 'moduleLoadList')]
}
