import { definePlugin, Events, Host, systemContext } from '@svc/core'
import { Checks, Isolation, MetricSources, NodeBus, PeerAnswers, Peers, ProcessSandbox } from '@svc/core/contracts'
import { pluginsCheck, statesOf, familiesOf } from './plugin-status.ts'
import { createFirstUse } from './first-use.ts'
import { createQuarantine, TOPIC } from './quarantine.ts'
import { isolationConfig } from './settings.ts'

/** The stage at which this worker has joined its peers, and does not serve yet. */
const JOINED = 950

export default definePlugin({
  section: 'isolation',
  config: isolationConfig,
  requires: { host: Host, events: Events },
  optional: { sandbox: ProcessSandbox, peers: Peers, bus: NodeBus },
  provides: Isolation,
  setup(scope, { host, events, sandbox, peers, bus }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'isolation')
    const quarantine = createQuarantine({ peers, bus, events, report: ctx => host.report(ctx), log })
    // a server without isolated plugins needs no checks, metrics or taps
    const onFirst = () => {
      scope.add(Checks, 'plugins', pluginsCheck(host, peers))
      scope.add(MetricSources, 'isolation', { read: async ctx => familiesOf((await host.report(ctx)).plugins) })
      scope.tap(Peers.hooks.message, ({ topic, message }, ctx) => quarantine.onMessage(topic, message, ctx))
      scope.tap(Peers.hooks.metrics, async (metrics, ctx) => ({
        ...metrics,
        isolation: { quarantine: quarantine.records(), states: await statesOf(host, ctx) },
      }))
      scope.add(PeerAnswers, TOPIC, quarantine.answer)
      // an answer can take a while, and the bus waits for its taps
      scope.tap(NodeBus.hooks.joined, member => {
        quarantine
          .met(member, lasting)
          .catch((err: unknown) => log.debug({ err }, 'failed to read the quarantined plugins of a node'))
      })
      scope.tap(Host.hooks.ready, (_, ctx) => quarantine.joined(ctx), { stage: JOINED })
    }
    return scope.use(createFirstUse({ config, log, sandbox, quarantine, onFirst }))
  },
})

export type { IsolationConfig } from './settings.ts'
