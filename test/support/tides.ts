import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DEFAULTS } from '../../cli/src/curated.ts'
import { type PackageJson, tarballOf, writeFiles } from './registry.ts'

export interface Tides {
  readonly version: string
  readonly name?: string
  /** It says which core it wants, as it should: npm is then asked once more whether all can be had. Of most tests it is no part, and half of what they would take. */
  readonly asksCore?: true
  /** Of its manifest, beside what a tool has. */
  readonly svc?: object
  /** What its setup does before it adds the tool. */
  readonly setup?: string
  readonly files?: Readonly<Record<string, string>>
  /** Its module; default: the one that it has. */
  readonly main?: string
  /** Of npm, at its installation. */
  readonly scripts?: Readonly<Record<string, string>>
}

export const TIDES = 'svc-plugin-tides'

/** The package of a plugin whose tool `tides` says which version it is. */
function packageOf({ version, name = TIDES, svc = {}, asksCore, scripts, files = {}, main = 'index.js' }: Tides): PackageJson {
  return {
    name,
    version,
    description: 'Tells the tides',
    type: 'module',
    ...(Object.hasOwn(files, 'commands.js') ? { exports: { '.': `./${main}`, './commands': './commands.js' } } : { main }),
    keywords: ['svc-plugin'],
    ...(asksCore ? { peerDependencies: { '@svc/core': '^0.1.0' } } : {}),
    ...(scripts ? { scripts } : {}),
    svc: { api: 1, kind: 'tool', contributes: { tools: ['tides'] }, ...svc },
  }
}

const filesOf = ({ version, setup = '', files = {} }: Tides) => ({
  'index.js': `import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const parameters = { type: 'object', properties: {}, additionalProperties: false }
const call = async () => ({ content: [{ type: 'text', text: 'the tides of ${version}' }] })
export default definePlugin({
  setup(scope) {
    ${setup}
    scope.add(Tools, 'tides', { description: 'Tells the tides', category: 'time', effects: [], parameters, call })
  },
})
`,
  ...files,
})

/** Its tarball, and what a registry is told with it. */
export async function tidesTarball(folder: string, tides: Tides): Promise<{ readonly file: string; readonly pkg: PackageJson }> {
  const pkg = packageOf(tides)
  return { file: await tarballOf(folder, pkg, filesOf(tides)), pkg }
}

/** Its tarball alone: npm need not pack it, which is a third of an install. */
export const tidesFile = async (folder: string, tides: Tides): Promise<string> => (await tidesTarball(folder, tides)).file

/** Its folder. */
export async function tidesFolder(folder: string, tides: Tides): Promise<string> {
  const own = await mkdtemp(join(folder, 'tides-'))
  await writeFiles(own, { 'package.json': JSON.stringify(packageOf(tides)), ...filesOf(tides) })
  return own
}

export const COMMAND = {
  svc: { kind: 'command', contributes: { commands: ['tides now'] } },
  files: {
    'commands.js': `import { Flags, SvcCommand } from '@svc/cli/command'

class Now extends SvcCommand {
  static summary = 'Tell the tides'
  static examples = ['<%= config.bin %> <%= command.id %>']
  static flags = { next: Flags.boolean({ summary: 'Tell the next one too' }) }

  async run() {
    const { flags } = await this.parse(Now)
    this.print(flags.next ? 'high, then low' : 'high')
  }
}

export const COMMANDS = { 'tides:now': Now }
`,
    'index.js': "import { definePlugin } from '@svc/core'\nexport default definePlugin({ setup() {} })\n",
  },
}

const NEEDED = [
  'http',
  'rest',
  'manager',
  'chat',
  'model-calls',
  'conversations',
  'selection',
  'models',
  'modes',
  'provider-local',
  'store-sqlite',
  'sandbox-process',
  'isolation',
]

/** What a server of chat and tools needs of what comes with svc, and no more. */
export const FEW: readonly string[] = NEEDED.map(name => `@svc/plugin-${name}`)

/** Writes a configuration that has no others but those named: each command and each worker starts in half the time. */
export async function configureFew(
  folder: string,
  { plugins: own = [], ...more }: { readonly plugins?: readonly string[]; readonly [section: string]: unknown } = {},
  named: readonly string[] = []
): Promise<void> {
  const needed = [...FEW, ...named.map(name => `@svc/plugin-${name}`)]
  const out = (DEFAULTS.plugins as string[]).filter(name => !needed.includes(name))
  const plugins = [...out.map(use => ({ use, enabled: false })), ...own]
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ plugins, ...more }))
}

/** The module of a plugin whose tool ends its process when it is called with `die`. */
export const DIES = `import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const parameters = { type: 'object', properties: { die: { type: 'boolean' } }, additionalProperties: false }
const call = async ({ die }) => {
  if (die) process.exit(3)
  return { content: [{ type: 'text', text: 'high water' }] }
}
export default definePlugin({
  setup: scope => void scope.add(Tools, 'tides', { description: 'Tells the tides', category: 'time', effects: [], parameters, call }),
})
`
