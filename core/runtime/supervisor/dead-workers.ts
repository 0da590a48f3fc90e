import { type RunningHost, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { deadServers } from '../processes/control.ts'

/** The variable with the names of dead workers. It has not the form SVC_A__B, so it is not configuration. */
const DEAD_WORKERS = 'SVC_DEAD_WORKERS'

/** A limit: a server whose workers crash repeatedly must not fill memory or environment. Leases of older ones have expired. */
const REMEMBERED = 100

/** The workers of a server that have exited. A new worker releases their leases. */
export class DeadWorkers {
  readonly #names = new Set<string>()

  add(worker: string): void {
    this.#names.add(worker)
    const [oldest] = this.#names
    if (oldest !== undefined && this.#names.size > REMEMBERED) this.#names.delete(oldest)
  }

  /** The environment of the next worker. */
  get env(): NodeJS.ProcessEnv {
    return { [DEAD_WORKERS]: [...this.#names].join() }
  }
}

const RELEASE_MS = 10_000

/**
 * Prefixes of lease holders that are dead: workers of this server, and servers of this home that were killed. A holder begins with
 * `<name of the worker>/`, and that with `<id of the server>.`. Must be read before this server reports to be ready, because that
 * removes the traces.
 */
export async function deadHolders(home: string): Promise<string[]> {
  const workers = (process.env[DEAD_WORKERS] ?? '').split(',').filter(Boolean)
  return [...workers.map(worker => `${worker}/`), ...(await deadServers(home)).map(id => `${id}.`)]
}

/** Releases the leases of dead holders, so that others need not wait for their expiry. Logs errors and never throws. */
export async function releaseHolders(host: RunningHost, holders: readonly string[], signal: AbortSignal): Promise<void> {
  const hasStore = host.report().plugins.some(plugin => plugin.provides === Store.name && plugin.state === 'running')
  if (!hasStore) return
  const ctx = systemContext(AbortSignal.any([signal, AbortSignal.timeout(RELEASE_MS)]), 'dead workers')
  const failed = (err: unknown) =>
    host.log.warn({ err }, 'failed to release the leases of exited workers; they expire on their own')
  await Promise.all(holders.map(async holder => host.service(Store).releaseHolder(holder, ctx))).catch(failed)
}
