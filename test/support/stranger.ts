import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULTS } from '../../cli/src/curated.ts'
import { type Service, startService } from './service.ts'

/** A plugin package as a stranger publishes it. */
export interface Stranger {
  readonly name: string
  /** Its manifest, but for the api. */
  readonly svc: { readonly kind: string; readonly contributes?: object; readonly permissions?: object }
  readonly code: string
  /** Default: a process of its own. */
  readonly isolation?: 'process' | 'in-process'
  readonly version?: string
  /** The server starts without it where it cannot be started. */
  readonly optional?: true
  /** What the configuration accepts, in place of what the manifest asks for. */
  readonly permissions?: object
}

export interface StrangersOptions {
  /** Plugins of svc, `http`, that run beside them. */
  readonly beside: readonly string[]
  /** Further sections of the configuration. */
  readonly config?: object
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
}

/** What every such server is made of. */
const NEEDED = ['http', 'store-sqlite', 'sandbox-process', 'isolation']

/** Writes a package into a folder of its own; answers with that. */
export async function writeStranger(folder: string, { name, svc, code, version = '1.0.0' }: Stranger): Promise<string> {
  const own = join(folder, name)
  await mkdir(own, { recursive: true })
  const pkg = { name, version, type: 'module', main: 'index.js', keywords: ['svc-plugin'], svc: { api: 1, ...svc } }
  await writeFile(join(own, 'package.json'), JSON.stringify(pkg))
  await writeFile(join(own, 'index.js'), code)
  return own
}

/** Writes the packages and the configuration into a folder that the caller removes. */
async function layOutStrangers(folder: string, strangers: readonly Stranger[], { beside, config }: StrangersOptions) {
  const needed = [...NEEDED, ...beside].map(name => `@svc/plugin-${name}`)
  const out = (DEFAULTS.plugins as string[]).filter(name => !needed.includes(name))
  for (const stranger of strangers) await writeStranger(folder, stranger)
  const own = strangers.map(({ name, isolation = 'process', permissions, optional = false }) => ({
    use: `./${name}`,
    isolation,
    optional,
    ...(permissions ? { permissions } : {}),
  }))
  const plugins = [...out.map(use => ({ use, enabled: false })), ...own]
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...config, plugins }))
}

/** A real server in processes of its own, with plugins of strangers in processes of theirs. */
export async function serveStrangers(
  strangers: readonly Stranger[],
  options: StrangersOptions
): Promise<Service & { readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-strangers-'))
  await layOutStrangers(folder, strangers, options)
  const { env = {}, args = [] } = options
  const service = await startService({ cwd: folder, env, args }).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  return {
    ...service,
    folder,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A route as the manifest declares it. */
interface DeclaredRoute {
  readonly method: string
  readonly path: string
  readonly scope?: string
}

/** The parts of a manifest that let a plugin add these routes, and leave open those without a scope. */
export function routesOf(routes: Readonly<Record<string, DeclaredRoute>>) {
  const open = Object.entries(routes).flatMap(([name, { scope }]) => (scope === undefined ? [name] : []))
  return { contributes: { routes }, permissions: open.length > 0 ? { public_routes: open } : {} }
}
