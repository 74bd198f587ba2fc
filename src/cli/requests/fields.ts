/** The fields of a JSON text, each with its value as it is written. */

import { type JsonNode, readJsonText } from '../../message/explain/json-text.ts'

/**
 * Lists the fields by their path, as `properties.items[0].total` or `["Previous ID"]`. A key that is there twice has a
 * number behind its second path. Undefined for what is not JSON.
 */
export function listFields(bytes: Uint8Array): ReadonlyMap<string, string> | undefined {
  const json = readJsonText(Buffer.from(bytes).toString())
  if (json === undefined) return undefined
  const { strings, lexemes, numbers } = json
  const fields = new Map<string, string>()

  function add(path: string, value: string): void {
    let free = path
    for (let count = 2; fields.has(free); count += 1) free = `${path} (${count})`
    fields.set(free, value)
  }

  function visit(node: JsonNode, path: string): void {
    if (node.kind === 'string') add(path, lexemes[node.index] ?? '')
    else if (node.kind === 'number') add(path, numbers[node.index] ?? '')
    else if (node.kind === 'literal') add(path, node.text)
    else if (node.kind === 'list') {
      if (node.items.length === 0) add(path, '[]')
      for (const [index, item] of node.items.entries()) visit(item, `${path}[${index}]`)
    } else {
      if (node.members.length === 0) add(path, '{}')
      for (const [key, value] of node.members) visit(value, path + step(strings[key] ?? '', path === ''))
    }
  }

  visit(json.root, '')
  return fields
}

function step(key: string, isFirst: boolean): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `[${JSON.stringify(key)}]`
  return isFirst ? key : `.${key}`
}
