import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { definePlugin, Events, Host, svcHome, systemContext } from '@svc/core'
import { JobKinds, Jobs, NodeBus, PeerAnswers, Peers, PluginSet, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { APPLY, plansFor, SPACE } from './plugin-plans.ts'
import { createPluginSet } from './plugin-set.ts'
import { createPluginStates } from './plugin-states.ts'
import { publishDifference } from './set-events.ts'
import { followSet, sharesSet } from './shared-set.ts'
import type { LockedPlugin } from './set/lock.ts'

/** The folder of the lock: the svc home, or the build. */
const setHome = () => (process.env.SVC_PLUGINS ? resolve(process.env.SVC_PLUGINS) : svcHome())

/** The installed plugins. Most homes have none, and read no more than whether there is a lock. */
async function installed(): Promise<readonly LockedPlugin[]> {
  const home = setHome()
  if (!existsSync(join(home, 'svc-plugins.lock'))) return []
  return (await (await import('./set/lock.ts')).readLock(home)).plugins
}

/** When the server listens, its workers reach each other. */
const AFTER_SERVING = 2_000

/** Shows the plugins of the server, and changes the installed ones in jobs. Its commands are in `src/commands`. */
export default definePlugin({
  requires: { host: Host, events: Events },
  optional: { store: Store, jobs: Jobs, peers: Peers, bus: NodeBus },
  provides: PluginSet,
  async setup(scope, { host, events, store, jobs, peers, bus }) {
    const states = createPluginStates(host, peers)
    if (peers) {
      scope.tap(Peers.hooks.metrics, states.own)
      scope.tap(Peers.hooks.inherit, states.inherit)
    }
    const lasting = systemContext(scope.signal, 'plugins')
    const report = await host.report(lasting)
    const isShared = peers !== undefined && store !== undefined && (await sharesSet(report, store, lasting))
    const plans = plansFor(report, { store, jobs, peers, isShared })
    if (plans.kind) scope.add(JobKinds, APPLY, plans.kind)
    if (peers && store) {
      await openSpace(store, SPACE, {}, lasting)
      scope.tap(
        Host.hooks.ready,
        async () => {
          const publish = async () =>
            publishDifference({ store, events, log: scope.log }, await host.report(lasting), await installed(), lasting)
          publish().catch((err: unknown) => scope.log.warn({ err }, 'failed to compare the plugins with the former ones'))
          return undefined
        },
        { stage: AFTER_SERVING }
      )
    }
    if (isShared) await followSet(scope, { store, bus, self: report, home: setHome(), lasting })
    const { pluginSet, answers } = createPluginSet({ host, states, home: setHome(), installed, plans })
    for (const [topic, answer] of answers) scope.add(PeerAnswers, topic, answer)
    return pluginSet
  },
})
