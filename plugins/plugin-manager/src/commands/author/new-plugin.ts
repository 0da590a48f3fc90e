import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { API, type Manifest } from '@svc/core'
import { fileURLToPath } from 'node:url'
import { fromCaller } from '@svc/cli/program'
import { TEMPLATES } from '../../templates-folder.ts'
import { folderTaken } from './errors.ts'
import { type PluginWords, withWords, wordsOf } from './names.ts'
import { type Language, packageJson } from './package-json.ts'
import { toJavaScript, typed } from './to-javascript.ts'

/** Kinds of plugins that there is a template of. */
export const KINDS = ['provider', 'tool', 'node', 'auth', 'routes', 'command', 'store', 'vertical'] as const

interface Asked {
  readonly name: string
  readonly kind: (typeof KINDS)[number]
  readonly js: boolean
  readonly dir?: string | undefined
}

/** A package that was made. */
export interface NewPlugin {
  readonly folder: string
  /** As paths from the folder. */
  readonly files: readonly string[]
}

/** Makes the package of a plugin that passes its kit. Throws NAME_INVALID, FOLDER_TAKEN; then nothing was written. */
export async function newPlugin({ name, kind, js, dir }: Asked): Promise<NewPlugin> {
  const words = wordsOf(name)
  const folder = fromCaller(dir ?? basename(name))
  if (existsSync(folder) && readdirSync(folder).length > 0) throw folderTaken(folder)
  const files = await filesOf(kind, words, js ? 'js' : 'ts')
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text, { flag: 'wx' })
  }
  return { folder, files: Object.keys(files).sort() }
}

/** The files of a new plugin: path → text. */
async function filesOf(kind: string, words: PluginWords, language: Language): Promise<Record<string, string>> {
  const read = async (path: string) => withWords(await readFile(new URL(path, TEMPLATES), 'utf8'), words)
  const folder = fileURLToPath(new URL(`${kind}/`, TEMPLATES))
  const inside = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = inside.filter(one => one.isFile()).map(one => relative(folder, join(one.parentPath, one.name)))
  const own = paths.filter(path => path !== 'svc.json' && path !== 'README.md')
  const texts = await Promise.all(
    own.map(async path => [pathIn(path, words, language), inLanguage(await read(`${kind}/${path}`), path, language)])
  )
  const manifest = JSON.parse(await read(`${kind}/svc.json`)) as Omit<Manifest, 'api'>
  return {
    'package.json': json(packageJson({ words, language, manifest, api: API, core: coreVersion() })),
    'README.md': readme(words, await read(`${kind}/README.md`), language, manifest),
    LICENSE: await read('common/LICENSE'),
    '.gitignore': await read('common/gitignore'),
    ...configs(language, manifest),
    ...(Object.fromEntries(texts) as Record<string, string>),
  }
}

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`

const pathIn = (path: string, words: PluginWords, language: Language) =>
  withWords(language === 'js' ? path.replace(/\.ts$/, '.js') : path, words)

const inLanguage = (text: string, path: string, language: Language) =>
  path.endsWith('.ts') ? (language === 'js' ? toJavaScript(text) : typed(text)) : text

/** What this svc was built with. */
function coreVersion(): string {
  const text = readFileSync(new URL('../package.json', TEMPLATES), 'utf8')
  return (JSON.parse(text) as { peerDependencies: Record<string, string> }).peerDependencies['@svc/core']!
}

const CHECKS = { module: 'nodenext', target: 'esnext', strict: true, noEmit: true, skipLibCheck: true }

/** How its types are checked: in JavaScript by the editor, from the comments. */
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
npm test                # its own tests, and the kit that every plugin must pass
svc plugins dev         # a server that has it, and reloads when a file is saved
svc plugins lint        # what would trip somebody who installs it
svc plugins publish     # all of that, then npm publish; --dry-run shows what it would send
\`\`\`
${isBuilt ? '\nIn a package Node runs JavaScript alone: `npm run build` writes it to `dist`, and packing does that by itself.\n' : ''}`
}
