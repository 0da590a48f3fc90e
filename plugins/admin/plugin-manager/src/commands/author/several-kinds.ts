import type { Manifest } from '@svc/core'

/** Kinds of plugins that have a template. */
export const KINDS = [
  'provider',
  'tool',
  'node',
  'auth',
  'routes',
  'page',
  'service',
  'hook',
  'check',
  'command',
  'store',
  'vertical',
] as const

/** The files of one template with the names of the plugin: path → text. */
export interface KindTemplate {
  readonly kind: string
  readonly manifest: Omit<Manifest, 'api'>
  readonly readme: string
  /** Modules and tests, in TypeScript. */
  readonly files: Readonly<Record<string, string>>
}

const INDEX = 'src/index.ts'
const SAMPLES = 'test/samples.ts'

/**
 * Joins the templates of several kinds to one package: one module for each kind, one `definePlugin`, one run of the kit. Each
 * template has an `index.ts` with `setup(…) {` on its own line, so its members can be joined as text.
 */
export function joinTemplates(all: readonly KindTemplate[], kitFile: string): KindTemplate {
  const [first] = all
  if (all.length === 1) return first!
  const others = all.flatMap(({ kind, files }) =>
    Object.entries(files).flatMap(([path, text]): [string, string][] => {
      if (path === INDEX || path === SAMPLES) return []
      return path === kitFile ? ownTests(kind, text) : [[path, text]]
    })
  )
  return {
    kind: first!.kind,
    manifest: joinManifests(all.map(({ manifest }) => manifest)),
    readme: all.map(({ kind, readme }) => `## ${kind[0]!.toUpperCase()}${kind.slice(1)}\n\n${readme.trim()}\n`).join('\n'),
    files: {
      ...Object.fromEntries(others),
      [INDEX]: joinIndexes(all.map(({ kind, files }) => ({ kind, text: files[INDEX]! }))),
      [SAMPLES]: joinSamples(all.map(({ files }) => files[SAMPLES]!)),
      [kitFile]: KIT,
    },
  }
}

const KIT = `import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import samples from './samples.ts'

// the kits of every plugin and of each kind: manifest, generated calls, samples, abort, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)
`

/** The tests of a template without the kit, which runs once. */
function ownTests(kind: string, text: string): [path: string, text: string][] {
  const rest = text
    .replace(/^import samples from .*\n/m, '')
    .replace(/^(?:\/\/ .*\n)?for \(const .* of await pluginKit\(.*\n\n?/m, '')
    .replace(/^import \{ pluginKit \} from .*\n/m, '')
    .replace(/\bpluginKit, /, '')
    .replace(/, pluginKit\b/, '')
  return /^test\(/m.test(rest) ? [[`test/${kind}.test.ts`, rest]] : []
}

/** A manifest has one kind: the first. The kit checks permissions only of plugins that are set up, which a command is not. */
function joinManifests(all: readonly Omit<Manifest, 'api'>[]): Omit<Manifest, 'api'> {
  const { kind } = all.find(manifest => manifest.kind !== 'command') ?? all[0]!
  return {
    kind,
    contributes: Object.assign({}, ...all.map(manifest => manifest.contributes)) as NonNullable<Manifest['contributes']>,
    permissions: joinLists(all.map(({ permissions = {} }) => permissions as Lists)),
  }
}

type Lists = Readonly<Record<string, readonly string[]>>

function joinLists(all: readonly Lists[]): Lists {
  const keys = new Set(all.flatMap(lists => Object.keys(lists)))
  return Object.fromEntries([...keys].map(key => [key, all.flatMap(lists => lists[key] ?? [])]))
}

interface Imported {
  readonly from: string
  readonly names: readonly string[]
}

const importsIn = (text: string): Imported[] =>
  [...text.matchAll(/^import (?:type )?\{ (.*) \} from '(.*)'$/gm)].map(([, names = '', from = '']) => ({
    from,
    names: names.split(', '),
  }))

function importLines(all: readonly Imported[], word = 'import'): string {
  const sources = [...new Set(all.map(({ from }) => from))].sort((a, b) => Number(a.startsWith('.')) - Number(b.startsWith('.')))
  const namesOf = (source: string) => [...new Set(all.filter(({ from }) => from === source).flatMap(({ names }) => names))].sort()
  return sources.map(source => `${word} { ${namesOf(source).join(', ')} } from '${source}'\n`).join('')
}

interface Index {
  readonly kind: string
  readonly text: string
}

/** One `definePlugin` with the members of all. Names that two modules export get the kind as suffix. */
function joinIndexes(all: readonly Index[]): string {
  const own = all.map(index => importsIn(index.text).flatMap(({ from, names }) => (from.startsWith('.') ? names : [])))
  const isTaken = (name: string) => own.filter(names => names.includes(name)).length > 1
  const parts = all.map(({ kind, text }) =>
    partOf(text, name => (isTaken(name) ? `${name}${kind[0]!.toUpperCase()}${kind.slice(1)}` : name))
  )
  const body = parts.flatMap(({ body }) => body)
  // the result of a service comes last
  const lines = [...body.filter(line => !isReturn(line)), ...body.filter(isReturn)]
  const parameter = lines.some(line => line.includes('scope.')) ? 'scope' : ''
  const members = [...parts.flatMap(({ members }) => members), `  setup(${parameter}) {`, ...lines, '  },']
  const code = members.filter(line => lines.length > 0 || !line.startsWith('  setup(')).join('\n')
  return `${importLines(parts.flatMap(({ imports }) => imports))}\nexport default definePlugin({\n${code}\n})\n`
}

const isReturn = (line: string) => line.trim().startsWith('return ')

interface Part {
  readonly imports: readonly Imported[]
  /** Members of `definePlugin` but `setup`, as lines. */
  readonly members: readonly string[]
  /** Lines of `setup`. */
  readonly body: readonly string[]
}

function partOf(text: string, nameOf: (name: string) => string): Part {
  const imports = importsIn(text)
  const own = imports.flatMap(({ from, names }) => (from.startsWith('.') ? names : []))
  // a name of one word is also the text of its items
  const renamed = (line: string) =>
    own.reduce((code, name) => code.replaceAll(new RegExp(`(?<![\\w'.])${name}(?![\\w'])`, 'g'), nameOf(name)), line)
  const [, before = '', body = ''] = /definePlugin\(\{\n([^]*?)^ {2}setup\([^)]*\) \{\n([^]*?)^ {2}\},$/m.exec(text) ?? []
  const linesOf = (code: string) =>
    code
      .split('\n')
      .filter(line => line !== '')
      .map(renamed)
  const aliased = (name: string) => (own.includes(name) && nameOf(name) !== name ? `${name} as ${nameOf(name)}` : name)
  return {
    imports: imports.map(({ from, names }) => ({ from, names: from.startsWith('.') ? names.map(aliased) : names })),
    members: linesOf(before),
    body: linesOf(body),
  }
}

/** The members of all samples in one object. */
function joinSamples(all: readonly string[]): string {
  const imports = all.flatMap(importsIn).filter(({ from }) => from !== '@svc/testing')
  const inner = all.flatMap(text => /const samples: PluginSamples = \{\n([^]*?)^\}$/m.exec(text)?.[1] ?? [])
  const body = inner.length === 0 ? '{}' : `{\n${inner.join('')}}`
  return `${importLines(imports)}import type { PluginSamples } from '@svc/testing'

/** Samples for the kits that \`svc plugins test\` and the test beside this file run. */
//js: /** @type {import('@svc/testing').PluginSamples} */
const samples: PluginSamples = ${body}

export default samples
`
}
