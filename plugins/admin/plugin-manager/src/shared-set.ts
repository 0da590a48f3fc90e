import { type CallContext, Host, type HostReport, type Scope } from '@svc/core'
import type { Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import type { FollowerOptions } from './set-follower.ts'

/** Whether the plugins of this server are those of its cluster. Those of a build do not change. */
export async function sharesSet(
  { clusterId, serverId }: Pick<HostReport, 'clusterId' | 'serverId'>,
  store: Store,
  ctx: CallContext
): Promise<boolean> {
  return clusterId !== serverId && !process.env.SVC_PLUGINS && (await store.probe(ctx)).scope === 'cluster'
}

/** When the server listens, so that it can reload. */
const AFTER_SERVING = 2_000
/** The end of a take-over: the reload that it causes replaces this worker. */
const END_MS = 60_000

/** Follows the plugins of the cluster while this worker serves. Other servers load none of its code. */
export async function followSet(scope: Pick<Scope, 'tap' | 'log'>, options: Omit<FollowerOptions, 'log'>): Promise<void> {
  const [{ SetFollower }, { REVISION_SPACE }] = await Promise.all([import('./set-follower.ts'), import('./set/revisions.ts')])
  await openSpace(options.store, REVISION_SPACE, {}, options.lasting)
  const follower = new SetFollower({ ...options, log: scope.log })
  const begin = () => {
    follower.begin()
    return undefined
  }
  scope.tap(Host.hooks.ready, begin, { stage: AFTER_SERVING })
  scope.tap(Host.hooks.closing, () => follower.end(), { limitMs: END_MS })
}
