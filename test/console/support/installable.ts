import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Registry, startRegistry } from '../../support/registry.ts'
import { configureFew } from '../../support/tides.ts'
import type { ConsoleSetup } from './use-console.ts'

/** A folder for a server whose plugins a test changes. */
export interface Installable {
  readonly folder: string
  readonly registry: Registry
  readonly setup: Required<Pick<ConsoleSetup, 'args' | 'cwd' | 'env'>>
}

/** Configures a server with few plugins and without authentication, whose npm asks a registry of the test. */
export async function openInstallable(ends: AsyncDisposableStack, plugins: readonly string[]): Promise<Installable> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-console-plugins-'))
  ends.defer(() => rm(folder, { recursive: true, force: true }))
  const registry = ends.use(await startRegistry())
  await configureFew(folder, { server: { auth: { enabled: false } } }, plugins)
  const env = {
    npm_config_registry: registry.url,
    npm_config_cache: join(folder, 'cache'),
    npm_config_userconfig: join(folder, 'npmrc'),
    HOME: folder,
  }
  return { folder, registry, setup: { cwd: folder, env, args: ['--config', join(folder, 'svc.config.json')] } }
}
