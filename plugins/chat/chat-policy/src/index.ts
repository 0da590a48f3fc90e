import { definePlugin, Events, systemContext } from '@svc/core'
import {
  Chat,
  ModelCalls,
  Checks,
  MetricSources,
  ModelHealth,
  Peers,
  ProviderBreakerClosed,
  ProviderBreakerOpened,
  Providers,
} from '@svc/core/contracts'
import { createBreakers, createModelHealth, createOutcomes } from './model-health.ts'
import { createCandidates, createTurns, createPolicy, POLICY_CONFIG, createCheck, createPolicyCounts } from './policy.ts'

/** Runs after the taps that can answer the call themselves, such as the cache. */
const LAST = 10

/** Retries, fallback models, load shares by weight, and circuit breakers. */
export default definePlugin({
  section: 'chat.policy',
  config: POLICY_CONFIG,
  requires: { events: Events, providers: Providers },
  optional: { peers: Peers },
  provides: ModelHealth,
  setup(scope, { events, providers, peers }) {
    const { config } = scope
    const random = Math.random
    const lasting = systemContext(scope.signal, 'chat-policy')
    const breakers = createBreakers({
      failures: config.breaker_failures,
      openMs: config.breaker_open_ms,
      now: () => performance.now(),
      changed: (ref, state) =>
        void events.publish(state === 'open' ? ProviderBreakerOpened : ProviderBreakerClosed, ref, lasting),
    })
    const turns = createTurns()
    const outcomes = createOutcomes(breakers)
    const counts = createPolicyCounts()
    const candidates = createCandidates({ breakers, turns, providers, random })
    const policy = createPolicy({ config, breakers, candidates, outcomes, counts, random })
    scope.tap(ModelCalls.hooks.modelCall, policy.called, { stage: LAST })
    const health = createModelHealth(breakers, peers)
    scope.tap(ModelCalls.hooks.modelFailed, health.failed)
    scope.tap(ModelCalls.hooks.modelFailed, policy.failed)
    scope.tap(ModelCalls.hooks.modelDone, outcomes.done)
    scope.tap(ModelCalls.hooks.modelDone, health.done)
    scope.tap(Peers.hooks.metrics, health.own)
    scope.tap(Peers.hooks.inherit, health.inherit)
    scope.tap(Chat.hooks.end, turns.ended)
    scope.add(Checks, 'models', createCheck(breakers))
    scope.add(MetricSources, 'chat-policy', { read: async () => counts.read(breakers.states()) })
    return health.service
  },
})
