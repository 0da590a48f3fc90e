import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runSvc } from './command.ts'
import { configureFew } from './tides.ts'

/** A port without a listener: npm has no network. */
const NOWHERE = 'http://127.0.0.1:1'

/** A home, and a folder in which svc runs. */
export interface PluginWorkspace {
  readonly folder: string
  readonly home: string
  svc(...args: string[]): ReturnType<typeof runSvc>
  lock(): Promise<string>
}

/** Runs a test in its own workspace, and removes it afterwards. */
export async function inWorkspace(run: (workspace: PluginWorkspace) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-tides-'))
  const home = join(folder, 'home')
  await mkdir(home)
  await configureFew(folder)
  const env = {
    npm_config_registry: NOWHERE,
    npm_config_cache: join(folder, 'cache'),
    npm_config_userconfig: join(folder, 'npmrc'),
    HOME: folder,
  }
  const svc = (...args: string[]) => runSvc(args, { home, cwd: folder, env })
  try {
    await run({ folder, home, svc, lock: () => readFile(join(home, 'svc-plugins.lock'), 'utf8') })
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** The folder of the set in force. */
export async function setOf({ home }: PluginWorkspace): Promise<string> {
  const sets = join(home, 'plugins', 'sets')
  return join(sets, (await readdir(sets))[0]!)
}
