import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Program } from './processes.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const built = join(root, 'cli/dist/main.js')

/** Builds svc, unless `source` is set. Returns the Node arguments that start `svc`. */
export function svcEntry(source: boolean): readonly string[] {
  if (!source) spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'ignore' })
  return !source && existsSync(built)
    ? [join(root, 'bench/installed-svc.js')]
    : ['--conditions=svc-source', join(root, 'cli/src/main.ts')]
}

/** A server configuration with conversations in memory and the minimum for a load run. */
export const IN_MEMORY = {
  plugins: [{ use: '@svc/plugin-store-sqlite', enabled: false }, '@svc/plugin-store-memory'],
  store: { max_records: 20_000 },
}

/**
 * For growth measurements: with spare room V8 collects late, and uncollected memory looks like a leak. The young generation
 * must be small too: once it exceeds the free part of the old one, V8 collects everything again and again.
 */
export const SMALL_HEAP = '--max-old-space-size=96 --max-semi-space-size=16'

/** A server as users run it, with its own home and project folder. */
export function svcServe(entry: readonly string[], port: number, folder: string, config?: object): Program {
  if (config) writeFileSync(join(folder, 'svc.config.json'), JSON.stringify(config))
  return { args: [...entry, 'serve', '--port', String(port)], cwd: folder, env: { SVC_HOME: join(folder, 'home') } }
}

/** A peer of `bench/peers`. */
export const peer = (name: string, ...args: readonly (string | number)[]): Program => ({
  args: [fileURLToPath(new URL(`../peers/${name}.js`, import.meta.url)), ...args.map(String)],
})

/** A temporary folder, removed at the end of its `using` scope. */
export function scratch(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
