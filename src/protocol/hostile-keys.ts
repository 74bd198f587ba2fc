/** Drops the keys of parsed JSON that could reach a prototype once somebody copies them. */

/** Whether a key of this JSON could be `__proto__` or `prototype`, also when spelled with escapes. */
export function mayHoldHostileKeys(text: string): boolean {
  return text.includes('proto') || text.includes('\\u00')
}

/** Drops every `__proto__`, and every `prototype` of a `constructor`, at any depth. */
export function dropHostileKeys(value: unknown): void {
  const rest = [value] // A list, not recursion: JSON nests deeper than the stack.
  while (rest.length > 0) {
    const node = rest.pop()
    if (typeof node !== 'object' || node === null) continue
    Reflect.deleteProperty(node, '__proto__')
    if (Object.hasOwn(node, 'constructor')) drop(node.constructor, 'prototype')
    for (const child of Object.values(node)) rest.push(child)
  }
}

function drop(value: unknown, key: string): void {
  if (typeof value === 'object' && value !== null) Reflect.deleteProperty(value, key)
}
