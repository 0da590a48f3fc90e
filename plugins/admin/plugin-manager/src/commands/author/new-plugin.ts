import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { API, type Manifest, COMMANDS_MODULE } from '@svc/core'
import { fileURLToPath } from 'node:url'
import { fromCaller } from '@svc/cli/program'
import { TEMPLATES } from '../../templates-folder.ts'
import { developmentSpecs, isLinked } from './development-specs.ts'
import { folderTaken, kindsSeparate, nameInvalid } from '../errors.ts'
import { joinTemplates, type KINDS, type KindTemplate } from './several-kinds.ts'
import { stripTypeScriptTypes, builtinModules } from 'node:module'

type Kind = (typeof KINDS)[number]

/** Kinds that need a package of their own: set up once per entry, or without code, or the store of svc. */
const ALONE: readonly Kind[] = ['provider', 'store', 'vertical']

interface NewPluginOptions {
  readonly name: string
  readonly kinds: readonly Kind[]
  readonly js: boolean
  readonly dir?: string | undefined
}

/** A created package. */
export interface NewPlugin {
  readonly folder: string
  /** Paths relative to the folder. */
  readonly files: readonly string[]
}

/**
 * Creates a plugin package that passes its test kit. Throws NAME_INVALID, KINDS_SEPARATE and FOLDER_TAKEN before it writes
 * anything.
 */
export async function newPlugin({ name, kinds: given, js, dir }: NewPluginOptions): Promise<NewPlugin> {
  const words = wordsOf(name)
  const kinds = [...new Set(given)]
  const alone = kinds.find(kind => ALONE.includes(kind))
  if (alone !== undefined && kinds.length > 1) throw kindsSeparate(alone)
  const folder = fromCaller(dir ?? basename(name))
  if (existsSync(folder) && readdirSync(folder).length > 0) throw folderTaken(folder)
  const files = await filesOf(kinds, words, js ? 'js' : 'ts')
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text, { flag: 'wx' })
  }
  return { folder, files: Object.keys(files).sort() }
}

/** The files of a new plugin: path → text. */
async function filesOf(kinds: readonly Kind[], words: PluginWords, language: Language): Promise<Record<string, string>> {
  const read = readerOf(words)
  const all = await Promise.all(kinds.map(kind => templateOf(kind, words)))
  const { manifest, readme: text, files } = joinTemplates(all, withWords(KIT_FILE, words))
  const own = Object.entries(files).map(([path, code]) => [pathIn(path, language), inLanguage(code, path, language)])
  return {
    'package.json': json(packageJson({ words, language, kinds, manifest, api: API, core: coreVersion() })),
    'README.md': readme(words, text, language, manifest),
    LICENSE: await read('common/LICENSE'),
    '.gitignore': await read('common/gitignore'),
    ...configs(language, manifest),
    ...(Object.fromEntries(own) as Record<string, string>),
  }
}

const KIT_FILE = 'test/sample-word.test.ts'

const readerOf = (words: PluginWords) => async (path: string) =>
  withWords(await readFile(new URL(path, TEMPLATES), 'utf8'), words)

async function templateOf(kind: Kind, words: PluginWords): Promise<KindTemplate> {
  const read = readerOf(words)
  const folder = fileURLToPath(new URL(`${kind}/`, TEMPLATES))
  const inside = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = inside.filter(item => item.isFile()).map(item => relative(folder, join(item.parentPath, item.name)))
  const own = paths.filter(path => path !== 'svc.json' && path !== 'README.md')
  const texts = await Promise.all(own.map(async path => [withWords(path, words), await read(`${kind}/${path}`)] as const))
  return {
    kind,
    manifest: JSON.parse(await read(`${kind}/svc.json`)) as Omit<Manifest, 'api'>,
    readme: await read(`${kind}/README.md`),
    files: Object.fromEntries(texts),
  }
}

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`

const pathIn = (path: string, language: Language) => (language === 'js' ? path.replace(/\.ts$/, '.js') : path)

const inLanguage = (text: string, path: string, language: Language) =>
  path.endsWith('.ts') ? (language === 'js' ? toJavaScript(text) : typed(text)) : text

/** Versions of the tools that this svc was built with. */
function coreVersion(): string {
  const text = readFileSync(new URL('../package.json', TEMPLATES), 'utf8')
  return (JSON.parse(text) as { peerDependencies: Record<string, string> }).peerDependencies['@svc/core']!
}

const CHECKS = { module: 'nodenext', target: 'esnext', strict: true, noEmit: true, skipLibCheck: true }

/** How its types are checked; in JavaScript the editor checks the comments. */
function configs(language: Language, { runtime }: Omit<Manifest, 'api'>): Record<string, string> {
  const include = runtime === undefined ? ['src', 'test'] : ['test']
  if (language === 'js') return { 'jsconfig.json': json({ compilerOptions: { ...CHECKS, checkJs: true }, include }) }
  const erasable = {
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    rewriteRelativeImportExtensions: true,
    types: ['node'],
  }
  const whole = { 'tsconfig.json': json({ compilerOptions: { ...CHECKS, ...erasable }, include }) }
  if (runtime !== undefined) return whole
  const build = { noEmit: false, declaration: true, rootDir: 'src', outDir: 'dist' }
  return { ...whole, 'tsconfig.build.json': json({ extends: './tsconfig.json', compilerOptions: build, include: ['src'] }) }
}

function readme(words: PluginWords, text: string, language: Language, { runtime }: Omit<Manifest, 'api'>): string {
  const isBuilt = language === 'ts' && runtime === undefined
  const said = language === 'js' ? text.replaceAll(/(`(?:src|test)\/[\w/-]+)\.ts`/g, '$1.js`') : text
  return `# ${words.package}

${said.trim()}

## Work on it

\`\`\`sh
npm install             # @svc/core${language === 'ts' ? ', and what checks the types' : ''}
npm test                # its own tests, and the kit that every plugin must pass (Node 24 or newer)
svc plugins dev         # a server that has it, and reloads when a file is saved
${isBuilt ? 'npm run build           # writes JavaScript to dist\n' : ''}svc plugins install .   # installs ${isBuilt ? 'dist' : 'it'}; a running server loads it
svc plugins lint        # checks the package for problems
svc plugins publish     # all of that, then npm publish; --dry-run shows what it would send
\`\`\`
${isLinked() ? LINKED : ''}${isBuilt ? BUILT : ''}`
}

const LINKED =
  '\n`devDependencies` link to the svc on this machine, which is not from a registry. Write versions when others work on the plugin.\n'

const BUILT =
  '\nAn installed package contains JavaScript only: run `npm run build` before `svc plugins install`, which runs no scripts.\n`npm pack` and `npm publish` build it themselves.\n'

type Language = 'ts' | 'js'

/**
 * The kits need Node 24. The test runner of an older Node finds no TypeScript test, and ends with success. The text works in the
 * shells of all systems.
 */
const NODE_CHECK = `node -e "if (parseInt(process.versions.node) < 24) throw 'The tests need Node 24 or newer, this is ' + process.version"`

const NODE_TYPES = '^24.0.0'
const TYPESCRIPT = '^7.0.0'

interface Parts {
  readonly words: PluginWords
  readonly language: Language
  readonly kinds: readonly Kind[]
  readonly manifest: Omit<Manifest, 'api'>
  readonly api: number
  /** The version of @svc/core that the plugin needs. */
  readonly core: string
}

/**
 * The package.json of a new plugin. In TypeScript, the condition `development` leads to its source, and all others to its
 * build.
 */
function packageJson({ words, language, kinds, manifest, api, core }: Parts): object {
  const isData = manifest.runtime !== undefined
  const isStore = kinds.includes('store')
  const isBuilt = language === 'ts' && !isData
  const brought = {
    ...(manifest.contributes?.commands === undefined ? {} : { '@svc/cli': `^${core}` }),
    ...(isStore ? { '@svc/storage-kit': `^${core}` } : {}),
  }
  return {
    name: words.package,
    version: '0.1.0',
    description: `A plugin for svc (${kinds.join(', ')}): ${words.kebab}`,
    license: 'MIT',
    keywords: ['svc-plugin'],
    type: 'module',
    engines: { node: '>=24' },
    ...(isData ? { main: 'vertical.yaml' } : { exports: exportsOf(kinds, isBuilt) }),
    files: [isData ? 'vertical.yaml' : isBuilt ? 'dist' : 'src', ...(kinds.includes('page') ? ['console'] : [])],
    scripts: {
      ...(isBuilt ? { build: 'tsc -p tsconfig.build.json', prepack: 'npm run build' } : {}),
      pretest: NODE_CHECK,
      test: 'node --test',
    },
    peerDependencies: { '@svc/core': `^${core}`, ...brought },
    // svc provides them, as it provides the core
    ...(Object.keys(brought).length > 0 ? { peerDependenciesMeta: mapped(brought, () => ({ optional: true })) } : {}),
    devDependencies: {
      ...developmentSpecs(
        ['@svc/core', '@svc/testing', ...Object.keys(brought), ...(isData ? ['@svc/plugin-verticals'] : [])],
        core
      ),
      ...(language === 'ts' ? { '@types/node': NODE_TYPES, typescript: TYPESCRIPT } : {}),
    },
    svc: { api, ...manifest },
  }
}

const mapped = <T>(entries: Readonly<Record<string, string>>, to: (value: string) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(entries).map(([key, value]) => [key, to(value)]))

function exportsOf(kinds: readonly Kind[], isBuilt: boolean): object {
  const modules = {
    '.': 'index',
    ...(kinds.includes('command') ? { [COMMANDS_MODULE]: 'commands' } : {}),
    ...(kinds.includes('service') ? { './service': 'service' } : {}),
  }
  const place = (name: string) =>
    isBuilt ? { development: `./src/${name}.ts`, types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` } : `./src/${name}.js`
  return { ...mapped(modules, place), './package.json': './package.json' }
}

const FOR_JAVASCRIPT = /^\s*\/\/js: /

/** The TypeScript of a template, without the parts for JavaScript. */
const typed = (code: string): string =>
  code
    .split('\n')
    .filter(line => !FOR_JAVASCRIPT.test(line))
    .join('\n')

/**
 * The JavaScript of a template. Types become the JSDoc of the lines that begin with `//js:`. Node replaces types by blanks,
 * which this removes.
 */
function toJavaScript(code: string): string {
  const lines = quietly(() => stripTypeScriptTypes(code)).split('\n')
  return lines
    .filter((line, at) => !isHole(line) && !(isLonely(line) && isHole(lines[at + 1] ?? '')))
    .map(line =>
      line
        .replace(/\/\/js: /, '')
        .replace(/(?<=\S) {2,}(?=[(),;:])/g, '')
        .replace(/(?<=\S) {2,}/g, ' ')
        .trimEnd()
    )
    .join('\n')
    .replaceAll(/(from '\.{1,2}\/[\w/-]+)\.ts'/g, "$1.js'")
    .replaceAll(/import \{ ([^}]*?),? \} from/g, 'import { $1 } from')
    .replaceAll(/\n{3,}/g, '\n\n')
    .replace(/^\n+/, '')
}

/** Node warns that its type stripping is experimental. The templates are svc's own, and tests create all of them. */
function quietly<T>(work: () => T): T {
  const before = Object.getOwnPropertyDescriptor(process, 'emitWarning')!
  process.emitWarning = () => {}
  try {
    return work()
  } finally {
    Object.defineProperty(process, 'emitWarning', before)
  }
}

/** Removes a line that contained only types; empty lines of the author stay. */
const isHole = (line: string) => line !== '' && line.trim() === ''
/** A comment whose code was removed. */
const isLonely = (line: string) => /^\s*\/\*\*.*\*\/$/.test(line)

/** The names in a new plugin, derived from the name of its package. */
interface PluginWords {
  /** `@me/svc-plugin-dice-box`. */
  readonly package: string
  /** `dice-box`. */
  readonly kebab: string
  /** `dice_box`, for models. */
  readonly snake: string
  /** `diceBox`. */
  readonly camel: string
  /** `DiceBox`. */
  readonly pascal: string
}

const NPM_NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/
const LONGEST = 214
const RESERVED = ['node_modules', 'favicon.ico', ...builtinModules]

/** Checks a name by the rules of npm and derives the names in the plugin. Throws NAME_INVALID. */
function wordsOf(name: string): PluginWords {
  const why = nameProblem(name)
  if (why !== undefined) throw nameInvalid(name, why)
  const parts = bare(name)
    .split(/[^a-z0-9]+/)
    .filter(part => part !== '')
  const pascal = parts.map(part => part[0]!.toUpperCase() + part.slice(1)).join('')
  return {
    package: name,
    kebab: parts.join('-'),
    snake: parts.join('_'),
    camel: pascal[0]!.toLowerCase() + pascal.slice(1),
    pascal,
  }
}

/** The name without its scope and its prefix. */
const bare = (name: string) => name.replace(/^@[^/]*\//, '').replace(/^svc-plugin-(?=.)/, '')

/** The problem with the name of a package to publish; undefined if it is valid. */
export function nameProblem(name: string): string | undefined {
  if (name.length > LONGEST) return `a name has at most ${LONGEST} characters`
  if (!NPM_NAME.test(name))
    return 'a package name consists of a-z, 0-9, "-", "." and "_", like svc-plugin-weather or @me/svc-plugin-weather'
  if (name.startsWith('@svc/')) return 'names that begin with @svc/ are reserved for svc'
  if (RESERVED.includes(name)) return 'Node or npm uses that name'
  return /^[a-z]/.test(bare(name)) ? undefined : 'after the scope and "svc-plugin-" it must begin with a letter'
}

/** Replaces the names of the template. */
const withWords = (text: string, words: PluginWords): string =>
  text
    .replaceAll('svc-plugin-sample', words.package)
    .replaceAll('SAMPLE_WORD', words.snake.toUpperCase())
    .replaceAll('sample_word', words.snake)
    .replaceAll('sample-word', words.kebab)
    .replaceAll('SampleWord', words.pascal)
    .replaceAll('sampleWord', words.camel)
