/** Runs code that `hookline types` wrote, as a program that imports it would. */

import * as v from 'valibot'
import { z } from 'zod'
import { type Format, printRules } from '../../src/types/print.ts'
import type { Finding, Rule } from '../../src/types/rule.ts'
import { normalise } from '../../src/types/schema.ts'

export interface Schemas {
  readonly events: Readonly<Record<string, Checked>>
  readonly traits: { readonly identify?: Checked; readonly group?: Checked }
}

interface Checked {
  readonly '~standard': { validate(value: unknown): { readonly issues?: readonly unknown[] } }
}

export function runCode(code: string): Schemas {
  const body = code.replace(/^import .*$/gm, '').replace(/^export const (\w+) = /gm, 'exports.$1 = ')
  return new Function('z', 'v', `'use strict'; const exports = {};\n${body}\nreturn exports`)(z, v)
}

export function accepts(schema: Checked | undefined, value: unknown): boolean {
  if (schema === undefined) throw new Error('The file has no such schema.')
  return schema['~standard'].validate(value).issues === undefined
}

export function write(schema: unknown, format: Format = 'zod', event = 'Order Completed') {
  const findings: Finding[] = []
  const normal = normalise(schema, (path, text) => findings.push({ place: `${event}: ${path}`, text }))
  const rule: Rule = { type: 'track', event, schema: normal, version: undefined }
  return { code: printRules([rule], format, (finding) => findings.push(finding)), findings }
}
