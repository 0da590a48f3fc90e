import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Service, startService } from './service.ts'
import { configureFew } from './tides.ts'
import { describeWith } from './needs.ts'

/** A plugin of an attacker, as files of a package. */
interface AttackerPlugin {
  readonly name: string
  /** The module. */
  readonly code: string
  /** Further members of its manifest. */
  readonly svc?: object
  /** Default: a process of its own. */
  readonly isolation?: 'process' | 'in-process'
}

interface AttackedOptions {
  readonly plugins: readonly AttackerPlugin[]
  /** Sections of the configuration. */
  readonly config?: object
  /** Curated plugins beside those of a small server. */
  readonly curated?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A real server with plugins of an attacker, in a folder of its own that goes with it. */
export interface Attacked extends AsyncDisposable {
  readonly service: Service
  readonly folder: string
  /** Starts the same server once more, after its end. */
  again(): Promise<Service>
}

/** Groups of cases that need the sandbox: without it they are skipped with the reason. */
export const describeIsolated = (title: string, cases: (this: Mocha.Suite) => void) => describeWith('bubblewrap', title, cases)

/** Starts a server with these plugins. */
export async function startAttacked({ plugins, config = {}, curated = [], env = {} }: AttackedOptions): Promise<Attacked> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-attacked-'))
  const home = join(folder, 'home')
  await mkdir(home)
  const entries = await Promise.all(plugins.map(plugin => writePlugin(folder, plugin)))
  await configureFew(folder, { ...config, plugins: entries as never }, curated)
  const start = () => startService({ home, cwd: folder, args: ['--config', join(folder, 'svc.config.json')], env })
  const attacked = {
    service: await start().catch(async (error: unknown) => {
      await rm(folder, { recursive: true, force: true })
      throw error
    }),
    folder,
    async again() {
      return (attacked.service = await start())
    },
    async [Symbol.asyncDispose]() {
      await attacked.service[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 10 })
    },
  }
  return attacked
}

async function writePlugin(folder: string, { name, code, svc = {}, isolation = 'process' }: AttackerPlugin) {
  const own = join(folder, name)
  await mkdir(own)
  const manifest = { name, version: '1.0.0', type: 'module', main: 'index.js', svc: { api: 1, kind: 'tool', ...svc } }
  await writeFile(join(own, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(own, 'index.js'), code)
  return { use: `./${name}`, isolation }
}
