import { asSvcError, type CallContext, definePlugin, Host, type HostReport, systemContext, withTimeout } from '@svc/core'
import { Checks, ProtectedPaths, Redis, Store } from '@svc/core/contracts'
import { storeIdentity } from '@svc/storage-kit'
import { loginFiles } from '@svc/storage-kit/server-login'
import { config, connectionOf } from './config.ts'
import { RedisService } from './redis.ts'

/** The start of a server waits so long for Redis. */
const FIRST_MS = 5_000

/** The connection of a server to Redis. A server starts without Redis, too. */
export default definePlugin({
  section: 'redis',
  config,
  requires: { host: Host },
  optional: { store: Store },
  provides: Redis,
  async check(settings) {
    try {
      connectionOf(settings)
      return []
    } catch (error) {
      return [asSvcError(error, 'REDIS_CONFIG_INVALID')]
    }
  },
  async setup(scope, { host, store }) {
    const lasting = systemContext(scope.signal, 'redis')
    const report = await host.report(lasting)
    const { config: settings, log } = scope
    const mustKeep = (['counts', 'queue'] as const).filter(use => settings.use.includes(use))
    const redis = scope.use(
      new RedisService({ connection: connectionOf(settings), prefix: () => prefixOf(report, store, lasting), mustKeep, log })
    )
    const paths = loginFiles(settings)
    if (paths.length > 0) scope.add(ProtectedPaths, 'redis', { paths, owner: 'the Redis connection of this server' })
    scope.add(Checks, 'redis', { probe: () => redis.probe() })
    await withTimeout(FIRST_MS, () => redis.start()).catch(() => {}) // it goes on
    return redis
  },
})

/**
 * A cluster has the name of its store in it, so that two clusters with the same `cluster.name` never share anything. A server alone has
 * that of its home, so that its counts last when it restarts.
 */
async function prefixOf(
  { clusterId, serverId, nodeId }: HostReport,
  store: Store | undefined,
  ctx: CallContext
): Promise<string> {
  if (clusterId === serverId) return `svc:${encodeURIComponent(`node ${nodeId}`)}:`
  const cluster = `svc:${encodeURIComponent(clusterId)}:`
  return store ? `${cluster}${await storeIdentity(store, ctx)}:` : cluster
}
