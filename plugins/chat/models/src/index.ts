import { definePlugin, Host } from '@svc/core'
import { ModelCalls, MetricSources, ModelAliases, Prices, Providers } from '@svc/core/contracts'
import { createCosts, createPrices, warnOfNames, MODELS_CONFIG } from './models.ts'

/** Aliases and prices of models. */
export default definePlugin({
  section: 'models',
  config: MODELS_CONFIG,
  requires: { providers: Providers },
  provides: Prices,
  setup(scope, { providers }) {
    const costs = createCosts(scope.config)
    for (const [name, alias] of Object.entries(scope.config.aliases)) scope.add(ModelAliases, name, alias)
    if (Object.keys(scope.config.prices).length > 0) scope.tap(ModelCalls.hooks.modelDone, costs.count)
    scope.tap(Host.hooks.ready, () => warnOfNames(scope.config, providers, scope.log))
    scope.add(MetricSources, 'models', { read: async () => costs.read() })
    return createPrices(scope.config)
  },
})
