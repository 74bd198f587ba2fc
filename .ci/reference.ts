/**
 * Run as a program: compares the pages of `docs/reference`, one for each subpath, with what the types and their comments say. `--write`
 * writes them.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import ts from 'typescript'

const FOLDER = 'docs/reference'
/** The most characters of a line of prose, and of a type in a table. */
const WIDTH = 140
const TYPE_WIDTH = 90

const ERRORS = /\b(Type|Range|Hookline)Error\b/g

interface Page {
  /** The name that users import: `hookline/queues/sqlite`. */
  readonly subpath: string
  /** The name of its file: `queues-sqlite.md`. */
  readonly file: string
  readonly source: ts.SourceFile
  /** What it exports: the symbols of the declarations, by their names. */
  readonly exported: ReadonlyMap<string, ts.Symbol>
}

const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, unknown> }
const subpaths = Object.keys(exports).filter((subpath) => subpath !== './package.json')
const program = createProgram(subpaths.map(sourceOf))
const checker = program.getTypeChecker()
const pages = subpaths.map(readPage)
const faults: string[] = []

/** The first page that exports a type describes it. */
const homes = new Map<ts.Symbol, Page>()
for (const page of pages) {
  for (const symbol of page.exported.values()) if (!homes.has(symbol)) homes.set(symbol, page)
}
/** The types that no page exports, but whose members exported types have. */
const hidden = new Map(pages.map((page) => [page, findHidden(page)] as const))

const texts = new Map([['index.md', writeIndex()], ...pages.map((page) => [page.file, writePage(page)] as const)])
finish()

function finish(): void {
  if (process.argv.includes('--write') && faults.length === 0) {
    rmSync(FOLDER, { recursive: true, force: true })
    mkdirSync(FOLDER, { recursive: true })
    for (const [name, text] of texts) writeFileSync(join(FOLDER, name), text)
  }
  const names = new Set([...texts.keys(), ...(existsSync(FOLDER) ? readdirSync(FOLDER) : [])])
  for (const name of names) {
    const path = join(FOLDER, name)
    const now = existsSync(path) ? readFileSync(path, 'utf8') : undefined
    if (now !== texts.get(name)) faults.push(`${path} differs from the comments. Run 'npm run reference'.`)
  }
  for (const fault of faults) console.error(`ERROR: ${fault}`)
  console.log(`${texts.size} pages of the reference, ${faults.length} faults`)
  process.exitCode = faults.length === 0 ? 0 : 1
}

function sourceOf(subpath: string): string {
  const name = subpath === '.' ? 'index' : subpath.slice(2)
  const paths = [`src/${name.replace('/', '-')}.ts`, `adapters/${name}.ts`, `tools/${name}/src/index.ts`]
  const found = paths.find((path) => existsSync(path))
  if (found === undefined) throw new Error(`${subpath} needs a source. Looked for ${paths.join(', ')}.`)
  return resolve(found)
}

function createProgram(files: readonly string[]): ts.Program {
  const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, process.cwd())
  return ts.createProgram(files, options)
}

function readPage(subpath: string): Page {
  const source = program.getSourceFile(sourceOf(subpath)) as ts.SourceFile
  const found = checker.getExportsOfModule(checker.getSymbolAtLocation(source) as ts.Symbol)
  const declared = found.map((symbol) => {
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0
    return [symbol.name, isAlias ? checker.getAliasedSymbol(symbol) : symbol] as const
  })
  const name = subpath === '.' ? 'hookline' : subpath.slice(2).replace('/', '-')
  return { subpath: subpath.replace('.', 'hookline'), file: `${name}.md`, source, exported: new Map(declared) }
}

function findHidden(page: Page): readonly ts.Symbol[] {
  const own = [...homes].filter(([, home]) => home === page).flatMap(([{ declarations = [] }]) => declarations)
  const parents = own.filter(ts.isInterfaceDeclaration).flatMap(parentsOf)
  const found = parents.filter((symbol) => !homes.has(symbol) && symbol.declarations?.some(ts.isInterfaceDeclaration))
  for (const symbol of found) homes.set(symbol, page)
  return [...new Set(found)]
}

/** The interfaces of this package that an interface extends, as they are. */
function parentsOf({ heritageClauses = [] }: ts.InterfaceDeclaration | { heritageClauses?: undefined }): ts.Symbol[] {
  const parents = heritageClauses.flatMap(({ types }) => types)
  return parents.flatMap(({ expression }) => (ts.isIdentifier(expression) ? (resolveName(expression) ?? []) : []))
}

function writeIndex(): string {
  const rows = pages.map((page) => {
    const names = [...page.exported].filter(([, symbol]) => isValue(symbol)).map(([name]) => code(name))
    return `| [${code(page.subpath)}](${page.file}) | ${names.join(', ')} | ${cell(moduleText(page))} |`
  })
  return join2([
    '# Reference',
    wrap(
      'Everything that the package exports, a page for each import, written from the types. An option has one sentence here: your editor shows all of its comment, and the guides say when to use it.',
    ),
    ['| import | functions and values | |', '|---|---|---|', ...rows].join('\n'),
  ])
}

function writePage(page: Page): string {
  const own = [...page.exported].filter(([, symbol]) => homes.get(symbol) === page)
  const elsewhere = [...page.exported].filter(([, symbol]) => homes.get(symbol) !== page)
  const values = own.filter(([, symbol]) => isValue(symbol))
  const shown = new Set<ts.Symbol>() // The options that follow their function.

  const sections = values.map(([name, symbol]) => {
    if (!isFunction(symbol)) return writeValue(page, name, symbol)
    const options = optionsOf(symbol).filter((each) => homes.get(each) === page && !shown.has(each))
    for (const each of options) shown.add(each)
    return [writeFunction(page, name, symbol), ...options.flatMap((each) => writeType(page, each.name, each))].flat()
  })
  sections.sort((one, other) => rankOf(one) - rankOf(other))
  const unexported = (hidden.get(page) ?? []).map((symbol) => [symbol.name, symbol] as const)
  const types = [...own, ...unexported].filter(([, symbol]) => !isValue(symbol) && !shown.has(symbol))
  types.sort(([one], [other]) => (one < other ? -1 : 1))

  const imported = [...page.exported].filter(([, symbol]) => isValue(symbol)).map(([name]) => name)
  const others = elsewhere.map(([name, symbol]) => linkTo(page, name, symbol)).sort()
  return join2([
    `# ${page.subpath}`,
    ...paragraphs(page, moduleText(page)),
    fence(wrapList('import { ', imported, ` } from '${page.subpath}'`)),
    ...sections.flat(),
    ...(types.length + others.length === 0 ? [] : ['## Types']),
    ...(others.length === 0 ? [] : [wrap(`Described on other pages: ${others.join(', ')}.`)]),
    ...types.flatMap(([name, symbol]) => writeType(page, name, symbol)),
  ])
}

/** Functions with options come first, then others, then classes and constants. */
function rankOf(section: readonly string[]): number {
  if (section.some((part) => part.startsWith('### '))) return 0
  return section.some((part) => /^```ts\n\w+(<.*>)?\(/.test(part)) ? 1 : 2
}

/** The text at the top of the source, without its tag. */
function moduleText({ source }: Page): string {
  const [, comment = ''] = /^\/\*\*([\s\S]*?)\*\//.exec(source.text) ?? []
  return comment
    .replaceAll(/^ *\* ?/gm, '')
    .replace(/@module.*/, '')
    .trim()
    .replaceAll('\n', ' ')
}

function isValue(symbol: ts.Symbol): boolean {
  return (symbol.flags & ts.SymbolFlags.Value) !== 0
}

function isFunction(symbol: ts.Symbol): boolean {
  return (symbol.flags & ts.SymbolFlags.Function) !== 0
}

/** The declarations of a function that users see: its overloads, or its only one. */
function formsOf(symbol: ts.Symbol): readonly ts.FunctionDeclaration[] {
  const all = (symbol.declarations ?? []).filter(ts.isFunctionDeclaration)
  const overloads = all.filter(({ body }) => body === undefined)
  return overloads.length > 0 ? overloads : all
}

/** The types of the parameters that are options. */
function optionsOf(symbol: ts.Symbol): readonly ts.Symbol[] {
  const found = formsOf(symbol).flatMap(({ parameters }) =>
    parameters.flatMap(({ type }) => (type ? namedIn(type) : [])),
  )
  return [...new Set(found)].filter(({ name }) => name.endsWith('Options'))
}

/** The types with a section that a type names, but for those of which it takes a part. */
function namedIn(node: ts.Node): ts.Symbol[] {
  const found: ts.Symbol[] = []
  const visit = (each: ts.Node): void => {
    if (ts.isTypeReferenceNode(each)) {
      if (/^(Pick|Omit)$/.test(each.typeName.getText())) return
      const symbol = resolveName(each.typeName)
      if (symbol !== undefined && homes.has(symbol)) found.push(symbol)
    }
    ts.forEachChild(each, visit)
  }
  visit(node)
  return found
}

function resolveName(name: ts.EntityName): ts.Symbol | undefined {
  const symbol = checker.getSymbolAtLocation(name)
  return symbol !== undefined && (symbol.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(symbol) : symbol
}

function writeFunction(page: Page, name: string, symbol: ts.Symbol): string[] {
  const forms = formsOf(symbol)
  const documented = forms.find((form) => docOf(form) !== '') ?? forms[0]
  if (documented === undefined) return []
  const tags = tagsOf(documented)
  const parameters = tags
    .filter(({ name }) => name === 'param')
    .map(({ text }) => text.replace(/^(\S+) *-? */, (_, parameter) => `- ${code(parameter)}: `))
  const returned = tags.find(({ name }) => name === 'returns')?.text
  const result = returned === undefined ? resultOf(page, documented) : `**Returns** ${lowerFirst(returned)}`
  const thrown = tags.filter(({ name }) => name === 'throws').map(({ text }) => `**Throws** ${text}`)
  const examples = tags.filter(({ name }) => name === 'example').map(({ text }) => fence(text))
  return [
    `## ${name}`,
    fence(forms.map((form) => signatureOf(name, form)).join('\n')),
    ...paragraphs(page, docOf(documented)),
    ...(parameters.length === 0 ? [] : [parameters.map((line) => wrap(textOf(page, line), '  ')).join('\n')]),
    ...[result, ...thrown].filter((line) => line !== '').map((line) => wrap(textOf(page, line))),
    ...examples,
  ]
}

/** Links to the type that a function returns, where it has a section. */
function resultOf(page: Page, { type }: ts.SignatureDeclaration): string {
  if (type === undefined || !ts.isTypeReferenceNode(type)) return ''
  const [symbol] = namedIn(type)
  if (symbol === undefined) return ''
  return `**Returns** ${/^Promise</.test(type.getText()) ? 'a promise of ' : ''}${linkTo(page, symbol.name, symbol)}.`
}

/** A signature without its type parameters, which are inferred. */
function signatureOf(name: string, form: ts.SignatureDeclaration): string {
  const parameters = form.parameters.map((parameter) => {
    const mark = parameter.questionToken !== undefined || parameter.initializer !== undefined ? '?' : ''
    return `${parameter.dotDotDotToken ? '...' : ''}${parameter.name.getText()}${mark}: ${typeText(parameter.type)}`
  })
  const generic = form.typeParameters?.map((each) => each.name.text) ?? []
  const elide = (text: string): string => withoutArguments(text, generic)
  const [start, list, end] = [name, parameters.map(elide), `: ${elide(typeText(form.type))}`]
  const isGeneric = generic.filter((each) => [...list, end].some((text) => new RegExp(`\\b${each}\\b`).test(text)))
  return wrapList(`${start}${isGeneric.length > 0 ? `<${isGeneric.join(', ')}>` : ''}(`, list, `)${end}`)
}

/** Leaves out type arguments that are type parameters themselves. */
function withoutArguments(text: string, generic: readonly string[]): string {
  const list = generic.join('|')
  return list === '' ? text : text.replaceAll(new RegExp(`<(?:${list})(?:, (?:${list}))*>`, 'g'), '')
}

/** A constant or a class. */
function writeValue(page: Page, name: string, symbol: ts.Symbol): string[] {
  const [declaration] = symbol.declarations ?? []
  if (declaration !== undefined && ts.isClassDeclaration(declaration)) {
    const isPublic = (member: ts.ClassElement): boolean =>
      member.name !== undefined &&
      !ts.isPrivateIdentifier(member.name) &&
      ts.getCombinedModifierFlags(member) !== ts.ModifierFlags.Private
    const members = declaration.members.filter(isPublic).filter((member) => !ts.isConstructorDeclaration(member))
    return [`## ${name}`, ...paragraphs(page, symbolDoc(symbol)), tableOf(page, 'property', members, false)]
  }
  const type = checker.typeToString(checker.getTypeOfSymbol(symbol), undefined, ts.TypeFormatFlags.NoTruncation)
  const short = type.length > WIDTH ? [] : [fence(`${name}: ${type}`)]
  return [`## ${name}`, ...short, ...paragraphs(page, symbolDoc(symbol))]
}

function writeType(page: Page, name: string, symbol: ts.Symbol): string[] {
  const [declaration] = symbol.declarations ?? []
  const isHidden = hidden.get(page)?.includes(symbol) === true
  const doc = `${symbolDoc(symbol)}${isHidden ? ' This type is not exported.' : ''}`
  const head = [`### ${name}`, ...paragraphs(page, doc)]
  const examples = declaration === undefined ? [] : tagsOf(declaration).filter((tag) => tag.name === 'example')
  const end = examples.map(({ text }) => fence(text))
  if (declaration === undefined) return head
  if (ts.isInterfaceDeclaration(declaration)) return [...head, ...writeInterface(page, symbol, declaration), ...end]
  if (!ts.isTypeAliasDeclaration(declaration)) return head
  if (ts.isTypeLiteralNode(declaration.type)) {
    return [...head, tableOf(page, 'property', [...declaration.type.members], false), ...end]
  }
  const parameters = declaration.typeParameters?.map((each) => each.name.text).join(', ')
  const text = formatType(declaration.type)
  const start = `type ${name}${parameters ? `<${parameters}>` : ''} =`
  return [...head, fence(text.startsWith('|') ? `${start}\n  ${text}` : `${start} ${text}`), ...end]
}

function writeInterface(page: Page, symbol: ts.Symbol, declaration: ts.InterfaceDeclaration): string[] {
  const parents = declaration.heritageClauses?.flatMap(({ types }) => types) ?? []
  const own = declaration.members.filter((member) => member.name !== undefined)
  const inherited = checker
    .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
    .flatMap(({ declarations = [] }) => declarations.slice(0, 1))
    .filter((each) => ts.isTypeElement(each) && !own.includes(each as ts.TypeElement)) as ts.TypeElement[]
  const isObject = !own.some(ts.isMethodSignature)
  const isInput =
    symbol.name.endsWith('Options') || (isObject && own.some((member) => defaultOf(member).found !== undefined))
  const members = isInput ? [...inherited, ...own] : own
  const named = parents.flatMap((parent) => {
    if (parent.typeArguments !== undefined) return code(oneLine(parent.getText()))
    const found = ts.isIdentifier(parent.expression) ? resolveName(parent.expression) : undefined
    return found !== undefined && homes.has(found) ? linkTo(page, found.name, found) : []
  })
  const rest = isInput || named.length === 0 ? [] : [`It also has the members of ${named.join(' and ')}.`]
  const heading = symbol.name.endsWith('Options') ? 'option' : isObject ? 'property' : 'member'
  return [...rest, ...(members.length === 0 ? [] : [tableOf(page, heading, members, isInput)])]
}

type Member = ts.TypeElement | ts.ClassElement

function tableOf(page: Page, heading: string, members: readonly Member[], isInput: boolean): string {
  const head = isInput
    ? `| ${heading} | type | default | |\n|---|---|---|---|`
    : `| ${heading} | type | |\n|---|---|---|`
  const rows = members.map((member) => {
    const { name: bare, type } = memberOf(member)
    const isOptional = 'questionToken' in member && member.questionToken !== undefined
    const name = isOptional && !isInput && !ts.isMethodSignature(member) ? `${bare}?` : bare
    const { found, rest } = defaultOf(member)
    if (!isInput) {
      const [thrown] = tagsOf(member).flatMap(
        (tag) => (tag.name === 'throws' ? sentencesOf(tag.text)[0] : undefined) ?? [],
      )
      const all = [inShort(docOf(member)), thrown && `*Throws* ${thrown}`].filter(Boolean).join(' ')
      return `| ${code(name)} | ${typeCell(page, type, member)} | ${cell(textOf(page, all))} |`
    }
    const text = cell(textOf(page, inShort(rest)))
    if (text === '' && heading === 'option') faults.push(`${placeOf(member)}: ${name} needs a comment.`)
    const given = found === undefined ? (isOptional ? '' : '*required*') : cell(textOf(page, found))
    return `| ${code(name)} | ${typeCell(page, type, member)} | ${given} | ${text} |`
  })
  return [head, ...rows].join('\n')
}

/** A method is shown with its parameters, and the type is what it returns. */
function memberOf(member: Member): { readonly name: string; readonly type: string } {
  const name = member.name?.getText() ?? ''
  if (!ts.isMethodSignature(member) && !ts.isMethodDeclaration(member)) {
    const { type } = member as ts.PropertySignature
    return { name, type: type === undefined ? inferredType(member) : typeText(type).replace(/ \| undefined$/, '') }
  }
  const parameters = member.parameters.map((parameter) => {
    const { type } = parameter
    if (type !== undefined && ts.isLiteralTypeNode(type)) return type.getText()
    return `${parameter.name.getText()}${parameter.questionToken === undefined ? '' : '?'}`
  })
  const owner = member.parent
  const generic = 'typeParameters' in owner ? (owner.typeParameters ?? []).map((each) => each.name.text) : []
  return { name: `${name}(${parameters.join(', ')})`, type: withoutArguments(typeText(member.type), generic) }
}

function inferredType(member: Member): string {
  return checker.typeToString(checker.getTypeAtLocation(member))
}

/** A type, as a link if it is the name of one. */
function typeCell(page: Page, type: string, member: Member): string {
  const parts = type.split(' | ')
  const named = new Map(namedIn(member).map((symbol) => [symbol.name, symbol]))
  const isPlain = parts.every((part) => named.has(part) || /^['\w\d.]+$/.test(part))
  if (!isPlain) return cell(code(shorten(type)))
  const links = parts.map((part) => {
    const symbol = named.get(part)
    return symbol === undefined ? code(part) : linkTo(page, part, symbol)
  })
  return links.join(' \\| ')
}

function typeText(node: ts.TypeNode | undefined): string {
  return node === undefined ? 'unknown' : inOneLine(withoutComments(node.getText()).replaceAll('readonly ', ''))
}

/** Joins the lines of a type: members have no semicolon at the end of a line. */
function inOneLine(type: string): string {
  return type
    .replaceAll(/(?<=[\w\]})>'"])\n\s*(?=[\w['"])/g, '; ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\( | \)|, \)|^\| /g, (found) => found.replace(/[, |]/g, ''))
    .trim()
}

/** A type in several lines, as its source has it. */
function formatType(node: ts.TypeNode): string {
  const text = withoutComments(node.getText()).replaceAll('readonly ', '')
  const short = inOneLine(text)
  return short.length <= 100 ? short : text.replaceAll(/\n\s*\n/g, '\n')
}

function withoutComments(text: string): string {
  return text.replaceAll(/\s*\/\*\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*\n/gm, '')
}

function shorten(type: string): string {
  if (type.length <= TYPE_WIDTH) return type
  const without = type.replaceAll(/\{[^{}]*\}/g, '{ … }')
  return without.length <= TYPE_WIDTH ? without : `${without.slice(0, TYPE_WIDTH - 2)} …`
}

function linkTo(page: Page, name: string, symbol: ts.Symbol): string {
  const home = homes.get(symbol)
  return home === undefined
    ? code(name)
    : `[${code(name)}](${home === page ? '' : home.file}#${anchorOf(home, symbol)})`
}

/** GitHub numbers headings that are the same but for their case: a function comes before its type. */
function anchorOf(page: Page, symbol: ts.Symbol): string {
  const slug = symbol.name.toLowerCase()
  const same = [...page.exported.values()].filter(
    (each) => homes.get(each) === page && each.name.toLowerCase() === slug,
  )
  const ordered = same.sort((one, other) => Number(isValue(other)) - Number(isValue(one)))
  const index = ordered.indexOf(symbol)
  return index > 0 ? `${slug}-${index}` : slug
}

/** The whole comment of a declaration, its paragraphs on lines of their own. */
function docOf(node: ts.Node): string {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).slice(-1)
  return plain(ts.getTextOfJSDocComment(comment?.comment))
}

function symbolDoc({ declarations = [] }: ts.Symbol): string {
  const [declaration] = declarations
  if (declaration === undefined) return ''
  return docOf(ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration)
}

interface Tag {
  readonly name: string
  readonly text: string
}

function tagsOf(node: ts.Node): readonly Tag[] {
  return ts.getJSDocTags(node).map((tag) => {
    const text = plain(ts.getTextOfJSDocComment(tag.comment))
    const parameter = ts.isJSDocParameterTag(tag) ? `${tag.name.getText()} ` : ''
    const type = ts.isJSDocThrowsTag(tag) && tag.typeExpression ? `${tag.typeExpression.getText()} ` : ''
    return {
      name: tag.tagName.text,
      text: tag.tagName.text === 'example' ? text : `${parameter}${type}${oneLine(text)}`,
    }
  })
}

function plain(text: string | undefined): string {
  return (text ?? '').replaceAll('\r', '').trim()
}

/** Parts the comment of a member into what it says of the default, and the rest. */
function defaultOf(member: Member): { readonly found?: string; readonly rest: string } {
  const doc = docOf(member)
  const tag = tagsOf(member).find(({ name }) => name === 'default')
  if (tag !== undefined) return { found: asValue(tag.text), rest: doc }
  const sentences = sentencesOf(doc)
  const index = sentences.findIndex((sentence) => /^Default(:|\s+[`'[\d]|\s+(true|false|null)\b)/.test(sentence))
  const sentence = sentences[index]
  if (sentence === undefined) return { rest: doc }
  const [, colon, value = ''] = /^Default(:?)\s+([\s\S]*?)\.?$/.exec(sentence) ?? []
  const [found = '', ...more] = colon || value.length < 50 ? value.split(colon ? '\n' : '; ') : value.split(/[;:] /)
  const added = more.map((part) => `${part.charAt(0).toUpperCase()}${part.slice(1)}.`)
  const rest = [...sentences.slice(0, index), ...added, ...sentences.slice(index + 1)]
  return { found: asValue(found), rest: rest.join(' ') }
}

function asValue(text: string): string {
  return text.replace(/^(true|false|null)(?=$|[:,;])/, '`$1`')
}

/** The first sentence of a comment, and those that say with what it goes together. */
function inShort(doc: string): string {
  const [first = '', ...others] = sentencesOf(doc)
  return [first, ...others.filter((sentence) => /^(Needs|Not together|Not awaited)\b/.test(sentence))].join(' ')
}

function sentencesOf(doc: string): readonly string[] {
  return oneLine(doc.split(/\n *\n/).join(' '))
    .split(/(?<=[.!?]\)?) +(?=[A-Z`'"([\d{])/)
    .filter((sentence) => sentence !== '')
}

function paragraphs(page: Page, doc: string): string[] {
  return doc
    .split(/\n *\n/)
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const items = part.split(/\n(?=- )/)
      const isList = items.every((item) => item.startsWith('- '))
      return isList
        ? items.map((item) => wrap(textOf(page, oneLine(item)), '  ')).join('\n')
        : wrap(textOf(page, oneLine(part)))
    })
}

/** Resolves the links of a comment, and escapes what Markdown would read as HTML. */
function textOf(page: Page, text: string): string {
  const cited = text.replaceAll(/"(Outbound event delivery|Go client library)"/g, (_, part: string) => {
    return `[${part}](../specification.md#${part.toLowerCase().replaceAll(' ', '-')})`
  })
  const linked = cited.replaceAll(/\{@link\s+([\w.]+)(?:\s*\|\s*([^}]*))?\}/g, (_, target: string, label?: string) => {
    const [name = '', member] = target.split('.')
    const symbol = page.exported.get(name) ?? [...homes.keys()].find((each) => each.name === name)
    if (symbol === undefined && /^[A-Z]/.test(name)) faults.push(`${page.subpath}: {@link ${target}} leads nowhere.`)
    if (symbol === undefined || member !== undefined) return code(label ?? target)
    return linkTo(page, name, symbol)
  })
  return linked
    .split(/(`[^`]*`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll('<', '\\<').replaceAll(ERRORS, '`$&`')))
    .join('')
}

function placeOf(node: ts.Node): string {
  const source = node.getSourceFile()
  return `${source.fileName}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`
}

function lowerFirst(text: string): string {
  return /^[A-Z][a-z]+ /.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

function code(text: string): string {
  return `\`${text}\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

function fence(text: string): string {
  return `\`\`\`ts\n${text}\n\`\`\``
}

/** A list in a line, or an item on each. */
function wrapList(start: string, items: readonly string[], end: string): string {
  const line = `${start}${items.join(', ')}${end}`
  if (line.length <= 100) return line
  return `${start.trimEnd()}\n${items.map((item) => `  ${item},\n`).join('')}${end.trimStart()}`
}

function wrap(text: string, indent = ''): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > WIDTH) {
      lines.push(line)
      line = `${indent}${word}`
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line].join('\n')
}

function join2(parts: readonly string[]): string {
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}
