import { type RunningHost, systemUse } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { deadServers } from '@svc/runtime'
import { DEAD_WORKERS } from './serve-flags.ts'

const RELEASE_MS = 10_000

/**
 * Who may hold leases and is dead: workers of this server, and servers of this home that were killed as a whole. A lease's holder is
 * `<id of the server>/<pid of the worker>/`. To be asked before this server is told to be ready: then it clears away what they have left.
 */
export async function deadHolders(serverId: string, home: string): Promise<string[]> {
  return [...deadBefore().map(pid => `${serverId}/${pid}/`), ...(await deadServers(home)).map(id => `${id}/`)]
}

/** Gives back their leases; else whoever waits for one would wait until it runs out. Never throws: what fails is logged. An abort ends it. */
export async function releaseHolders(host: RunningHost, holders: readonly string[], signal: AbortSignal): Promise<void> {
  const stores = host.report().plugins.some(plugin => plugin.provides === Store.name && plugin.state === 'running')
  if (!stores) return
  const use = systemUse(AbortSignal.any([signal, AbortSignal.timeout(RELEASE_MS)]), 'dead workers')
  const failed = (err: unknown) => host.log.warn({ err }, 'what dead workers held is free only when it runs out')
  await Promise.all(holders.map(async holder => host.service(Store).releaseHolder(holder, use))).catch(failed)
}

/** Without this process: the system may have given it the id of a dead one. */
const deadBefore = () => (process.env[DEAD_WORKERS] ?? '').split(',').filter(pid => pid !== '' && pid !== String(process.pid))
