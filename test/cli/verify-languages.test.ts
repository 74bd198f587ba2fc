/** `hookline verify` explains signatures that other languages made themselves, of what they made of the body. */

import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import type { Need } from '../support/left-out.ts'
import { needs } from '../support/needs.ts'
import { hookline } from './command.ts'

const SECRET = '7a5b3c1d'
const BODY =
  '{"type":"track","userId":"u-1","event":"Commandé </b>","properties":{"total":39.0,"weight":1e3,"order":9007199254740993,"url":"https://shop.example/a"}}'
const LIST = `[${BODY}, {"type":"page"}]`

/** A program that prints a signature, what is found, and where they differ from those above: the body and the secret of verify. */
type Case = readonly [program: string, found: readonly string[], passed?: { body?: string; secret?: string }]

interface Language {
  readonly name: string
  readonly program: Need
  readonly run: readonly string[]
  /** Reads stdin into `body`, SECRET into `key`, and defines `sign`. */
  readonly prelude: string
  readonly cases: readonly Case[]
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'openssl',
    program: 'openssl',
    run: ['sh', '-c'],
    prelude: 'key=$SECRET; sign() { openssl dgst -sha1 -hmac "$key" -r | cut -c 1-40; };',
    cases: [
      ['openssl dgst -sha256 -hmac "$key" -r | cut -d " " -f 1', ['hash_sha256']],
      ['openssl dgst -sha1 -r | cut -d " " -f 1', ['key_unused']],
      ['openssl dgst -sha1 -hmac "$key"', ['signature_labelled']],
      ['openssl dgst -sha1 -hmac "$key" -binary | base64', ['signature_base64']],
      ['sign | tr a-f A-F', ['signature_uppercase']],
      ['echo "sha1=$(sign)"', ['signature_labelled']],
      ['hex=$(sign); echo "$hex, $hex"', ['signature_repeated']],
      [
        '{ printf 1492774577.; cat; } | openssl dgst -sha256 -hmac "$key" -r | sed "s/\\(.*\\) .*/t=1492774577,v1=\\1/"',
        ['signature_timestamped', 'hash_sha256', 'body_timestamped'],
      ],
      ['{ cat; echo; } | sign', ['body_line_break_lost']],
      ['{ cat; printf "\\r\\n"; } | sign', ['body_line_break_lost']],
      ['printf %s "$(cat)" | sign', ['body_line_break_extra'], { body: `${BODY}\n` }],
      ['tr -d "\\r\\n" | sign', ['body_line_break_extra'], { body: `${BODY}\r\n` }],
      ['tail -c +4 | sign', ['body_bom_extra'], { body: `\ufeff${BODY}` }],
      ['{ printf "\\357\\273\\277"; cat; } | sign', ['body_bom_lost']],
      ['iconv -f UTF-8 -t LATIN1 | sign', ['body_latin1']],
      ['key="$key "; sign', ['secret_space_lost']],
      ['sign', ['secret_space_extra'], { secret: ` ${SECRET}` }],
      ['sign', ['secret_space_extra'], { secret: `${SECRET}\n` }],
      ['sign', ['secret_quotes_extra'], { secret: `"${SECRET}"` }],
      ['key="\'$key\'"; sign', ['secret_quotes_lost']],
      ['key=$(printf %s "$key" | base64); sign', ['secret_base64_encoded']],
      ['key=$(printf %s "$key" | od -An -tx1 | tr -d " "); sign', ['secret_hex_encoded']],
      ['openssl dgst -sha1 -mac HMAC -macopt hexkey:$key -r | cut -c 1-40', ['secret_hex_decoded']],
    ],
  },
  {
    name: 'Python',
    program: 'python3',
    run: ['python3', '-c'],
    prelude: `
import base64, hashlib, hmac, json, os, sys
body, key = sys.stdin.buffer.read(), os.environ['SECRET'].encode()
value = json.loads(body)
def sign(signed, key=key, hash='sha1'):
    print(hmac.new(key, signed if isinstance(signed, bytes) else signed.encode(), hash).hexdigest())
`,
    cases: [
      ['sign(json.dumps(value))', ['json.dumps of Python']],
      ['sign(json.dumps(value, sort_keys=True))', ['json.dumps of Python with sort_keys=True']],
      ['sign(json.dumps(value, indent=2))', ['json.dumps of Python with indent=2']],
      ["sign(json.dumps(value, separators=(',', ':')))", ["json.dumps of Python with separators=(',', ':')"]],
      ['sign(json.dumps(value, ensure_ascii=False))', ['json.dumps of Python with ensure_ascii=False']],
      ["sign(json.dumps(value), hash='sha256')", ['hash_sha256', 'json.dumps of Python']],
      ["sign(body.decode().encode('latin-1'))", ['body_latin1']],
      ["sign(body, key + b'\\n')", ['secret_line_break_lost']],
      ['sign(body, bytes.fromhex(key.decode()))', ['secret_hex_decoded']],
      ['sign(body, base64.b64decode(key))', ['secret_base64_decoded']],
      ['print(hashlib.sha1(key + body).hexdigest())', ['key_before_body']],
      ["print(hmac.new(key, body, 'sha1').digest().hex().upper())", ['signature_uppercase']],
      ['sign(json.dumps(value[0]))', ['body_first_element', 'json.dumps of Python'], { body: LIST }],
      ["sign(body[1:body.index(b', {')])", ['body_first_element'], { body: LIST }],
    ],
  },
  {
    name: 'PHP',
    program: 'php',
    run: ['php', '-r'],
    prelude: `
$body = file_get_contents('php://stdin'); $key = getenv('SECRET'); $value = json_decode($body);
function sign($signed) { global $key; echo hash_hmac('sha1', $signed, $key); }
`,
    cases: [
      ['sign(json_encode($value));', ['json_encode of PHP']],
      ['sign(json_encode($value, JSON_PRETTY_PRINT));', ['json_encode of PHP with JSON_PRETTY_PRINT']],
      ['sign(json_encode($value, JSON_UNESCAPED_SLASHES));', ['json_encode of PHP with JSON_UNESCAPED_SLASHES']],
      [
        'sign(json_encode($value, JSON_PRESERVE_ZERO_FRACTION));',
        ['json_encode of PHP with JSON_PRESERVE_ZERO_FRACTION'],
      ],
      ['echo hash_hmac("sha256", $body, $key);', ['hash_sha256']],
      ['echo sha1($body);', ['key_unused']],
      ['echo base64_encode(hash_hmac("sha1", $body, $key, true));', ['signature_base64']],
      ['sign(iconv("UTF-8", "ISO-8859-1", $body));', ['body_latin1']],
      ['$key = hex2bin($key); sign($body);', ['secret_hex_decoded']],
      ['sign(trim($body));', ['body_line_break_extra'], { body: `${BODY}\n` }],
    ],
  },
  {
    name: 'Ruby',
    program: 'ruby',
    run: ['ruby', '-e'],
    prelude: `
require 'base64'; require 'json'; require 'openssl'
body, key = STDIN.read, ENV['SECRET']
value = JSON.parse(body)
define_method(:sign) { |signed| print OpenSSL::HMAC.hexdigest('SHA1', key, signed) }
`,
    cases: [
      ['sign(JSON.generate(value))', ['JSON.generate of Ruby']],
      ['sign(JSON.generate(value, ascii_only: true))', ['JSON.generate of Ruby with ascii_only: true']],
      ['sign(JSON.generate(value, escape_slash: true))', ['JSON.generate of Ruby with escape_slash: true']],
      ['sign(JSON.pretty_generate(value))', ['JSON.generate of Ruby with pretty_generate']],
      [
        'sign(JSON.generate(value.sort.to_h))',
        ['JSON.generate of Ruby with sorted keys'],
        { body: '{"b":1.0,"a":1e3}' },
      ],
      [
        String.raw`sign(JSON.generate(value).gsub(/[<>&]/) { |char| '\\u%04x' % char.ord })`, // As ActiveSupport does.
        ['to_json of Rails'],
      ],
      ["print OpenSSL::HMAC.hexdigest('SHA256', key, body)", ['hash_sha256']],
      ["print Base64.strict_encode64(OpenSSL::HMAC.digest('SHA1', key, body))", ['signature_base64']],
      ['sign(body.chomp)', ['body_line_break_extra'], { body: `${BODY}\n` }],
      ["sign(body.encode('ISO-8859-1'))", ['body_latin1']],
    ],
  },
]

for (const { name, program: needed, run, prelude, cases } of LANGUAGES) {
  describe(name, needs(needed), () => {
    for (const [program, found, { body = BODY, secret = SECRET } = {}] of cases)
      it(program, async () => {
        const [file = '', ...args] = run
        const env = { ...process.env, SECRET, LC_ALL: 'C.UTF-8' }
        const printed = execFileSync(file, [...args, prelude + program], { input: body, env, encoding: 'utf8' })
        const { code, stdout } = await hookline(
          ['verify', '--json', '--body', '-', '--signature', printed.replace(/\n$/, '')],
          { input: body, env: { HOOKLINE_SECRET: secret } },
        )
        const { verdict, causes } = JSON.parse(stdout)
        const names = causes.map(({ code, writers }: { code: string; writers?: string[] }, index: number) =>
          writers === undefined ? code : (writers.find((writer) => writer === found[index]) ?? writers),
        )
        expect({ verdict, names, code }).toEqual({ verdict: 'explained', names: found, code: 1 })
      })
  })
}
