/** The serialisers that people use: a table of what each does to strings, numbers, the order of members and white space. */

import * as layouts from './json-layouts.ts'
import * as numbers from './json-numbers.ts'
import * as orders from './json-orders.ts'
import * as strings from './json-strings.ts'

/** One serialiser with its settings, after a parser of the same language. */
export interface JsonWriter {
  /** As a reader knows it: "json.dumps of Python with sort_keys=True". */
  readonly name: string
  readonly string: strings.WriteString
  readonly number: numbers.WriteNumber
  readonly order: orders.Arrange
  readonly layout: layouts.Layout
}

/** The settings of one kind, by what a reader sees of them: nothing for the default. */
type Settings<Value> = Readonly<Record<string, Value>>

/** A serialiser with every combination of its settings. */
interface Family {
  readonly name: string
  readonly string: Settings<strings.WriteString>
  readonly number: Settings<numbers.WriteNumber>
  readonly order: Settings<orders.Arrange>
  readonly layout: Settings<layouts.Layout>
}

const GO_LAYOUTS = {
  '': layouts.compact,
  'an indent of two spaces': layouts.twoSpaces,
  'an indent of four spaces': layouts.fourSpaces,
  'an indent of a tab': layouts.tabs,
}

const FAMILIES: readonly Family[] = [
  {
    name: 'JSON.stringify of JavaScript',
    string: { '': strings.javascript },
    number: { '': numbers.javascript },
    order: { '': orders.indexesFirst, 'sorted keys': orders.sortedByUnits },
    layout: {
      '': layouts.compact,
      'an indent of 2': layouts.twoSpaces,
      'an indent of 4': layouts.fourSpaces,
      'an indent of a tab': layouts.tabs,
    },
  },
  {
    name: 'json.dumps of Python',
    string: { '': strings.pythonAscii, 'ensure_ascii=False': strings.minimal },
    number: { '': numbers.python },
    order: { '': orders.asRead, 'sort_keys=True': orders.sortedByBytes },
    layout: {
      '': layouts.spaced,
      "separators=(',', ':')": layouts.compact,
      'indent=2': layouts.twoSpaces,
      'indent=4': layouts.fourSpaces,
      "indent='\\t'": layouts.tabs,
    },
  },
  {
    name: 'json_encode of PHP',
    string: {
      '': strings.php,
      JSON_UNESCAPED_SLASHES: strings.phpSlashes,
      JSON_UNESCAPED_UNICODE: strings.phpUnicode,
      'JSON_UNESCAPED_SLASHES, JSON_UNESCAPED_UNICODE': strings.phpSlashesUnicode,
    },
    number: { '': numbers.php, JSON_PRESERVE_ZERO_FRACTION: numbers.phpZeroFraction },
    order: { '': orders.asRead, 'json_decode into arrays': orders.phpArrays },
    layout: { '': layouts.compact, JSON_PRETTY_PRINT: layouts.fourSpaces },
  },
  {
    name: 'json.Marshal of Go',
    string: {
      '': strings.go,
      'SetEscapeHTML(false)': strings.goPlain,
      'a Go before 1.22': strings.oldGo,
      'SetEscapeHTML(false), a Go before 1.22': strings.oldGoPlain,
    },
    number: { '': numbers.go, 'UseNumber()': numbers.asWritten },
    order: { '': orders.sortedByBytes },
    layout: GO_LAYOUTS,
  },
  {
    name: 'JSON.generate of Ruby',
    string: {
      '': strings.minimal,
      'script_safe: true': strings.rubyScript,
      'escape_slash: true': strings.rubySlashes,
      'ascii_only: true': strings.rubyAscii,
    },
    number: { '': numbers.ruby },
    order: { '': orders.asRead, 'sorted keys': orders.sortedByBytes },
    layout: { '': layouts.compact, pretty_generate: layouts.twoSpaces, 'pretty_generate of json 2.6': layouts.oldRuby },
  },
  {
    name: 'to_json of Rails',
    string: { '': strings.rails },
    number: { '': numbers.rails },
    order: { '': orders.asRead },
    layout: { '': layouts.compact },
  },
  {
    name: 'a formatter that changes white space only',
    string: { '': strings.asWritten, 'escapes for HTML, as json.RawMessage of Go': strings.goPassedOn },
    number: { '': numbers.asWritten },
    order: { '': orders.asWritten, 'sorted keys': orders.sortedByBytes },
    layout: { ...GO_LAYOUTS, 'a space after commas and colons': layouts.spaced },
  },
  {
    name: 'a serialiser that keeps numbers as they are written',
    string: { '': strings.minimal, 'escapes for ASCII': strings.pythonAscii },
    number: { '': numbers.asWritten },
    order: { '': orders.asRead, 'sorted keys': orders.sortedByBytes },
    layout: { ...GO_LAYOUTS, 'a space after commas and colons': layouts.spaced },
  },
]

/** Every serialiser with every combination of its settings, those with few settings first. */
export const WRITERS: readonly JsonWriter[] = FAMILIES.flatMap(combine)
  .sort((one, other) => one.settings - other.settings)
  .map(({ writer }) => writer)

function combine(family: Family): { readonly settings: number; readonly writer: JsonWriter }[] {
  const found = []
  for (const [order, arrange] of Object.entries(family.order)) {
    for (const [escapes, string] of Object.entries(family.string)) {
      for (const [format, number] of Object.entries(family.number)) {
        for (const [space, layout] of Object.entries(family.layout)) {
          const set = [order, escapes, format, space].filter((setting) => setting !== '')
          const name = set.length === 0 ? family.name : `${family.name} with ${set.join(', ')}`
          found.push({ settings: set.length, writer: { name, string, number, order: arrange, layout } })
        }
      }
    }
  }
  return found
}
