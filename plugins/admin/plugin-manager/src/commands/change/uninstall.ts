import { setTimeout } from 'node:timers/promises'
import { systemContext } from '@svc/core'
import { findServers } from '@svc/runtime'
import { planChange, readLock, sweepSets } from '../../set.ts'
import { here, setHome } from '@svc/cli/program'
import { runChange } from './change.ts'
import { named } from './update.ts'

export interface UninstallAsked {
  readonly names: readonly string[]
  readonly json: boolean
  readonly config?: string | undefined
}

/** `svc plugins uninstall`: takes plugins out, and their files with them once no worker reads them. */
export async function uninstallPlugins({ names, ...asked }: UninstallAsked): Promise<number> {
  const { plugins } = await readLock(setHome())
  for (const name of names) named(plugins, name)
  const code = await runChange((home, options) => planChange(home, { uninstall: names, offline: true }, options), {
    ...asked,
    verb: 'uninstall',
    done: 'uninstalled',
    yes: true,
    dryRun: false,
    trust: false,
    nothing: 'nothing to take out',
  })
  if (code === 0) await sweepOnceUnread()
  return code
}

const PATIENCE_MS = 5_000
const STEP_MS = 50

/** Old workers end what they began, and may read files meanwhile; what is left behind then goes with the next change. */
async function sweepOnceUnread(): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await setTimeout(STEP_MS))
    if (!(await isDraining())) return sweepSets(setHome())
  process.stderr.write('note: old workers end what they began; the files go with the next change of plugins\n')
}

async function isDraining(): Promise<boolean> {
  using stack = new DisposableStack()
  const servers = (await findServers(here().home)).map(server => stack.use(server))
  const infos = await Promise.all(servers.map(({ control }) => control.info(systemContext(AbortSignal.timeout(PATIENCE_MS)))))
  return infos.some(({ workers }) => workers.some(one => one.state === 'draining'))
}
