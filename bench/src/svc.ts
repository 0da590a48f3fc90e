import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Program } from './processes.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const built = join(root, 'cli/dist/main.js')

/** Builds what users run, unless `source` is wanted; answers the arguments of Node that start `svc`. */
export function svcEntry(source: boolean): readonly string[] {
  if (!source) spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'ignore' })
  return !source && existsSync(built) ? [built] : ['--conditions=svc-source', join(root, 'cli/src/main.ts')]
}

/** The configuration of a server that keeps conversations in memory, and no more than a load run needs. */
export const IN_MEMORY = {
  plugins: [{ use: '@svc/plugin-store-sqlite', enabled: false }, '@svc/plugin-store-memory'],
  store: { max_records: 20_000 },
}

/**
 * For growth: with room to spare V8 collects late, and what it has not collected looks like a leak. The young generation has to be small with it: once that has
 * grown to more than is free of the old one, V8 collects everything, over and over.
 */
export const SMALL_HEAP = '--max-old-space-size=96 --max-semi-space-size=16'

/** A server as users run it, with a home and a project folder of its own. */
export function svcServe(entry: readonly string[], port: number, folder: string, config?: object): Program {
  if (config) writeFileSync(join(folder, 'svc.config.json'), JSON.stringify(config))
  return { args: [...entry, 'serve', '--port', String(port)], cwd: folder, env: { SVC_HOME: join(folder, 'home') } }
}

/** A peer of `bench/peers`. */
export const peer = (name: string, ...args: readonly (string | number)[]): Program => ({
  args: [fileURLToPath(new URL(`../peers/${name}.js`, import.meta.url)), ...args.map(String)],
})

/** A folder that goes with its `using`. */
export function scratch(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
