import { definePlugin, Events, systemContext } from '@svc/core'
import { Checks, ModelAliases, ModelCalls, Peers, Prices, Providers, Selection } from '@svc/core/contracts'
import { createModelCalls, createProviderCounts } from './model-calls.ts'
import { createProvidersCheck } from './providers-check.ts'
import { createClock } from './answer.ts'
import { CALLS_CONFIG } from './settings.ts'

/** Model calls as a service. */
export default definePlugin({
  section: 'models.calls',
  config: CALLS_CONFIG,
  requires: { events: Events, selection: Selection, providers: Providers, aliases: ModelAliases },
  optional: { peers: Peers, prices: Prices },
  provides: ModelCalls,
  setup(scope, { events, peers, prices, selection, providers, aliases }) {
    const counts = createProviderCounts(peers)
    scope.tap(Peers.hooks.metrics, counts.own)
    scope.tap(Peers.hooks.inherit, counts.inherit)
    scope.add(Checks, 'providers', createProvidersCheck(providers, counts, scope.log, scope.signal))
    const services = {
      config: scope.config,
      hooks: scope.hooks,
      events,
      log: scope.log,
      span: scope.span,
      clock: createClock(),
      lasting: systemContext(scope.signal, 'model calls'),
      providers,
      aliases,
      counts,
      prices,
    }
    return createModelCalls(services, selection)
  },
})
