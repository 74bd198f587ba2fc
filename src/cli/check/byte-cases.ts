/** The cases of how a message is written: what is signed are the bytes, whatever a serialiser would make of them. */

import { defineCase, type EndpointCase, signed } from './endpoint-case.ts'
import { arrange, type Form, messageOf, object, quote, write } from './message.ts'

const SECTION = 'Authentication 2'

/** A message with fields that are written in one way of several. */
function written(id: string, sends: string, advice: string, fields: string): EndpointCase {
  return exact(id, sends, advice, (form) => write(form, messageOf(form, `{"check":${quote(id)},${fields}}`)))
}

function exact(id: string, sends: string, advice: string, text: (form: Form) => string | Buffer): EndpointCase {
  const found = defineCase('taken', {
    id,
    sends,
    section: SECTION,
    advice,
    shots: (base) => signed(base, text(base.form)),
  })
  return { ...found, group: 'exact' }
}

/** A plain message, changed as a text. */
function changed(id: string, sends: string, advice: string, change: (text: string, form: Form) => string) {
  const plain = (form: Form): string => object(messageOf(form, object({ check: quote(id), other: quote('value') })))
  return exact(id, sends, advice, (form) => change(plain(form), form))
}

/** All of them are signed over the bytes that are sent. */
export const BYTE_CASES: readonly EndpointCase[] = [
  written('bytes-float', 'a message with the number 39.0', 'JavaScript, Go and PHP write it as 39.', '"value":39.0'),
  written(
    'bytes-decimal',
    'a message with the number 19.90',
    'Where numbers are doubles, it becomes 19.9.',
    '"value":19.90',
  ),
  written('bytes-exponent', 'a message with the number 1e3', 'It becomes 1000 or 1000.0.', '"value":1e3'),
  written(
    'bytes-big-integer',
    'a message with the number 9007199254740993',
    'Where numbers are doubles, it becomes 9007199254740992.',
    '"value":9007199254740993',
  ),
  written(
    'bytes-non-ascii',
    'a message with letters outside ASCII, as UTF-8',
    'Python and PHP write é as \\u00e9, and a body that is decoded as Latin-1 has two characters for it.',
    '"value":"Zoë Ångström, e\u0301, 東京, 😀"',
  ),
  written(
    'bytes-escaped-non-ascii',
    'a message with letters outside ASCII, as \\u escapes',
    'JavaScript and others write \\u00e9 as é.',
    '"value":"Zo\\u00eb \\u6771\\u4EAC \\ud83d\\ude00"',
  ),
  written(
    'bytes-line-separator',
    'a message with U+2028 and U+2029, as UTF-8 and as \\u escapes',
    'Go, Rails, PHP and Python escape U+2028; others write the escape as the character.',
    '"one":"\u2028\u2029","two":"\\u2028\\u2029"',
  ),
  written(
    'bytes-slash',
    'a message with slashes',
    'PHP writes / as \\/.',
    '"value":"https://hookline-check.example/a/b"',
  ),
  written(
    'bytes-escaped-slash',
    'a message with slashes that are escaped: \\/',
    'All but PHP write \\/ as /.',
    '"value":"https:\\/\\/hookline-check.example\\/a\\/b"',
  ),
  written(
    'bytes-html',
    "a message with the characters < > & ' +",
    'Go and Rails write < as \\u003c.',
    `"value":"<b>1 & 2</b> 'a'+%41=b"`,
  ),
  written(
    'bytes-escapes',
    'a message with quotation marks, backslashes and control characters, escaped in several ways',
    'A serialiser has one escape for each character.',
    '"one":"say \\"a\\\\b\\" \\b\\f\\n\\r\\t","two":"\\u0022\\u005c\\u000a\\u0041"',
  ),
  written('bytes-key-order', 'a message with keys that are not sorted', 'Go sorts keys.', '"zebra":"a","apple":"b"'),
  written(
    'bytes-index-keys',
    'a message with keys that are whole numbers, and not sorted',
    'JavaScript moves them to the front and sorts them.',
    '"item":"a","10":"b","9":"c"',
  ),
  written(
    'bytes-empty-object',
    'a message with an empty object',
    'PHP decodes {} into an array, and writes [].',
    '"value":{}',
  ),
  written('bytes-null', 'a message with the value null', 'Some serialisers leave out what is null.', '"value":null'),
  changed(
    'bytes-spaces',
    'a message with white space between its values',
    'A serialiser writes none, or another.',
    (text) => arrange({ isSpaced: true }, text).replaceAll(', ', ' ,  ').replaceAll(': ', ' :\t'),
  ),
  changed(
    'bytes-indented',
    'a message with line breaks and indentation, LF and CRLF',
    'A body that is read as text may have lost the CR of a line break.',
    (text) => JSON.stringify(JSON.parse(text), undefined, 2).replace(/\n(?= *")/g, '\r\n'),
  ),
  changed(
    'bytes-line-break-at-end',
    'a message with a line break at its end',
    'A body that is trimmed, as by strip() or trim(), has lost it.',
    (text, form) => `${arrange(form, text)}\n`,
  ),
  changed(
    'bytes-space-at-start',
    'a message with white space at its start',
    'A body that is trimmed, as by strip() or trim(), has lost it.',
    (text, form) => ` \n${arrange(form, text)}`,
  ),
]
