// Writes docs/reference/api/*.api.md, the public API by the declarations of core: `npm run api`.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** A report: its file, entry and title. */
const REPORTS = [
  { file: 'docs/reference/api/core.api.md', entry: 'kernel/src/index.d.ts', name: '@svc/core' },
  { file: 'docs/reference/api/core-contracts.api.md', entry: 'kernel/contracts/index.d.ts', name: '@svc/core/contracts' },
  { file: 'docs/reference/api/testing.api.md', entry: 'testing/src/index.d.ts', name: '@svc/testing' },
  { file: 'docs/reference/api/testing-engines.api.md', entry: 'testing/src/engines/index.d.ts', name: '@svc/testing/engines' },
] as const

/** One statement of a declaration file. */
interface Declared {
  readonly name: string
  readonly text: string
}

/** A declaration file: its declarations and re-exports. */
interface Module {
  readonly declared: ReadonlyMap<string, readonly string[]>
  /** Exported name → internal name and its file. */
  readonly handed: ReadonlyMap<string, { readonly from: string; readonly name: string }>
  readonly all: readonly string[]
  readonly own: readonly string[]
}

/** Drops comments and empty lines: they are documentation and change more often than the API. */
const bare = (text: string) =>
  text
    .replaceAll(/(['"`])(?:\\[^]|(?!\1)[^\n])*\1|\/\/.*|\/\*[^]*?\*\//g, (found, quote: string | undefined) =>
      quote === undefined ? '' : found
    )
    .split('\n')
    .map(line => line.trimEnd())
    .filter(line => line !== '')

/** Splits a file into statements: each starts with a line that is not indented and closes nothing. */
function statementsOf(text: string): string[] {
  const statements: string[][] = []
  for (const line of bare(text)) {
    if (/^[^\s})\]|&]/.test(line)) statements.push([line])
    else statements.at(-1)?.push(line)
  }
  return statements.map(lines => lines.join('\n'))
}

const DECLARED = /^(export )?(?:declare )?(?:abstract )?(?:interface|type|const|let|function|class) (\w+)/
const HANDED = /^export (?:type )?\{([^]*)\} from ['"](.+)['"]/
const ALL = /^export (?:type )?\* from ['"](.+)['"]/

async function readModule(file: string): Promise<Module> {
  const statements = statementsOf(await readFile(file, 'utf8'))
  const path = (from: string) => resolve(dirname(file), from.replace(/\.ts$/, '.d.ts'))
  const found = statements.flatMap((text): (Declared & { exported: boolean })[] => {
    const [, exported, name] = DECLARED.exec(text) ?? []
    return name === undefined
      ? []
      : [{ name, exported: exported !== undefined, text: text.replace(/^export /, '').replace(/^declare /, '') }]
  })
  const groups = Map.groupBy(found, item => item.name)
  return {
    declared: new Map([...groups].map(([name, all]) => [name, all.map(item => item.text)])),
    own: [...groups].filter(([, all]) => all.some(item => item.exported)).map(([name]) => name),
    all: statements.flatMap(text => ALL.exec(text)?.[1] ?? []).map(path),
    handed: new Map(statements.flatMap(text => handedBy(HANDED.exec(text), path))),
  }
}

function handedBy(match: RegExpExecArray | null, path: (from: string) => string) {
  const [, names = '', from = ''] = match ?? []
  return names.split(',').flatMap(part => {
    const [name, , as] = part
      .trim()
      .replace(/^type /, '')
      .split(/\s+/)
    return name ? [[as ?? name, { from: path(from), name }] as const] : []
  })
}

type Read = (file: string) => Promise<Module>

/** The exports of a module, name → texts, with the unexported declarations that they need. */
async function exportsOf(file: string, read: Read): Promise<Map<string, string>> {
  const module = await read(file)
  const found = new Map<string, string>()
  for (const name of module.own) take(module, name, found)
  for (const [name, { from, name: inside }] of module.handed) {
    const far = await exportsOf(from, read)
    const text = far.get(inside)
    if (text === undefined) throw new Error(`${from} exports no ${inside}`)
    found.set(name, text)
    for (const [other, words] of far) if (other.startsWith('~') && mentions(text, other.slice(1))) found.set(other, words)
  }
  for (const other of module.all) for (const [name, text] of await exportsOf(other, read)) found.set(name, text)
  return found
}

function take({ declared, own }: Module, name: string, found: Map<string, string>, key = name): void {
  if (found.has(key)) return
  const text = declared.get(name)!.join('\n')
  found.set(key, text)
  for (const other of declared.keys())
    if (!own.includes(other) && mentions(text, other)) take({ declared, own } as Module, other, found, `~${other}`)
}

const mentions = (text: string, name: string) => new RegExp(`\\b${name}\\b`).test(text)

const byName = ([a]: readonly [string, string], [b]: readonly [string, string]) => (a < b ? -1 : 1)

function page(name: string, found: ReadonlyMap<string, string>): string {
  const groups = Map.groupBy([...found].sort(byName), ([key]) => key.startsWith('~'))
  const code = (all: readonly (readonly [string, string])[] = []) =>
    `\`\`\`ts\n${all.map(([, text]) => text).join('\n\n')}\n\`\`\`\n`
  const inner = groups.get(true)
  return `# ${name}

Generated by \`npm run api\` from the declarations. Do not edit by hand. A difference here changes what plugins rely on:
see [the rules](../../explanation/plugin-versions.md).

${code(groups.get(false))}${inner ? `\n## Not exported, but part of the above\n\n${code(inner)}` : ''}`
}

/** Compiles the kernel and the test kits from their sources. */
const projectFor = (out: string) => ({
  extends: join(ROOT, 'tsconfig.build.json'),
  compilerOptions: {
    composite: false,
    customConditions: ['svc-source'],
    removeComments: true,
    typeRoots: [join(ROOT, 'node_modules/@types')],
    rootDir: join(ROOT, 'core'),
    outDir: out,
    tsBuildInfoFile: null,
  },
  // all folders: tsc does not emit a file that it first resolves through the name of its package
  include: ['kernel/src', 'kernel/config', 'kernel/loading', 'kernel/contracts', 'testing/src'].map(folder =>
    join(ROOT, 'core', folder)
  ),
})

/** The current reports: file → text. */
export async function apiReports(): Promise<Map<string, string>> {
  const out = await mkdtemp(join(tmpdir(), 'svc-api-'))
  try {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const project = join(out, 'tsconfig.json')
    await writeFile(project, JSON.stringify(projectFor(out)))
    await promisify(execFile)(process.execPath, [tsc, '-p', project], { cwd: ROOT })
    const modules = new Map<string, Promise<Module>>()
    const read: Read = file => {
      const module = modules.get(file) ?? readModule(file)
      modules.set(file, module)
      return module
    }
    const pages = REPORTS.map(
      async ({ file, entry, name }) => [file, page(name, await exportsOf(join(out, entry), read))] as const
    )
    return new Map(await Promise.all(pages))
  } finally {
    await rm(out, { recursive: true })
  }
}

/** The committed reports. */
export const committedReport = (file: string): Promise<string> => readFile(join(ROOT, file), 'utf8').catch(() => '')

if (import.meta.main) for (const [file, text] of await apiReports()) await writeFile(join(ROOT, file), text)
