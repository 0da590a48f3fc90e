import { type RunningHost, systemUse } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { DEAD_WORKERS } from './serve-flags.ts'

const RELEASE_MS = 10_000

/** Gives back the leases of workers that died; else whoever waits for one would wait until it runs out. */
export async function releaseDead(host: RunningHost, serverId: string): Promise<void> {
  const stores = host.report().plugins.some(plugin => plugin.provides === Store.name && plugin.state === 'running')
  if (!stores) return
  const use = systemUse(AbortSignal.timeout(RELEASE_MS), 'dead workers')
  const release = (pid: string) => host.service(Store).releaseHolder(`${serverId}/${pid}/`, use)
  const failed = (err: unknown) => host.log.warn({ err }, 'what dead workers held is free only when it runs out')
  await Promise.all(deadBefore().map(release)).catch(failed)
}

/** Without this process: the system may have given it the id of a dead one. */
const deadBefore = () => (process.env[DEAD_WORKERS] ?? '').split(',').filter(pid => pid !== '' && pid !== String(process.pid))
