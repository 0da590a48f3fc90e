import { definePlugin, Events, systemContext } from '@svc/core'
import {
  Chat,
  ModelCalls,
  Checks,
  MetricSources,
  ProviderBreakerClosed,
  ProviderBreakerOpened,
  Providers,
} from '@svc/core/contracts'
import { createBreakers, createOutcomes } from './breakers.ts'
import { createCandidates, createTurns, createPolicy, POLICY_CONFIG, createCheck, createPolicyCounts } from './policy.ts'

/** Runs after the taps that can answer the call themselves, such as the cache. */
const LAST = 10

/** Retries, fallback models, load shares by weight, and circuit breakers. */
export default definePlugin({
  section: 'chat.policy',
  config: POLICY_CONFIG,
  requires: { events: Events, providers: Providers },
  setup(scope, { events, providers }) {
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
    scope.tap(ModelCalls.hooks.modelFailed, policy.failed)
    scope.tap(ModelCalls.hooks.modelDone, outcomes.done)
    scope.tap(Chat.hooks.end, turns.ended)
    scope.add(Checks, 'models', createCheck(breakers))
    scope.add(MetricSources, 'chat-policy', { read: async () => counts.read(breakers.states()) })
  },
})
