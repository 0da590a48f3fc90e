import { asSvcError, definePlugin, Host, type HostReport, systemContext, withTimeout } from '@svc/core'
import { Checks, ProtectedPaths, Redis } from '@svc/core/contracts'
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
  provides: Redis,
  async check(settings) {
    try {
      connectionOf(settings)
      return []
    } catch (error) {
      return [asSvcError(error, 'REDIS_CONFIG_INVALID')]
    }
  },
  async setup(scope, { host }) {
    const report = await host.report(systemContext(scope.signal, 'redis'))
    const { config: settings, log } = scope
    const mustKeep = (['counts', 'queue'] as const).filter(use => settings.use.includes(use))
    const redis = scope.use(new RedisService({ connection: connectionOf(settings), prefix: prefixOf(report), mustKeep, log }))
    const paths = loginFiles(settings)
    if (paths.length > 0) scope.add(ProtectedPaths, 'redis', { paths, owner: 'the Redis connection of this server' })
    scope.add(Checks, 'redis', { probe: () => redis.probe() })
    await withTimeout(FIRST_MS, () => redis.start()).catch(() => {}) // it goes on
    return redis
  },
})

/** A cluster has one; a server alone has that of its home, so that its counts last when it restarts. */
const prefixOf = ({ clusterId, serverId, nodeId }: HostReport): string =>
  `svc:${encodeURIComponent(clusterId === serverId ? `node ${nodeId}` : clusterId)}:`
