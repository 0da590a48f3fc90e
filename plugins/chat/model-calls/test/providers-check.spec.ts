import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { definePlugin, type HookCallers, svcError } from '@svc/core'
import { Checks, type WorkerMetrics, Peers, type PeersHooks, type Provider, Providers } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { type CallsHost, startCallsHost } from './calls-host.ts'

/** A provider with this probe. */
const provider = (probe: Provider['probe']) =>
  item<Provider>(Providers, 'other', {
    features: { tool_calling: false, streaming: true, vision: false },
    models: async () => ({ models: [], open: true }),
    countTokens: async () => 0,
    async *chat() {},
    probe,
  })

const checkOf = (callsHost: CallsHost) => callsHost.host.slot(Checks).get('providers')!
const probed = (callsHost: CallsHost) => checkOf(callsHost).probe(testContext())

describe('the check of the providers', () => {
  it('gives up one that does not answer after two seconds, and ends its probe', async () => {
    const ended = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const hang: Provider['probe'] = ({ signal }) => {
      asked.resolve()
      signal.addEventListener('abort', () => ended.resolve())
      return new Promise(() => {})
    }
    await using callsHost = await startCallsHost({ give: [provider(hang)] })
    mock.timers.enable({ apis: ['setTimeout'] })
    const reported = probed(callsHost).finally(() => mock.timers.reset())
    await asked.promise
    await setImmediate() // by now the local one has answered
    mock.timers.tick(2_000)
    expect(await reported).to.deep.equal({
      status: 'degraded',
      reason: 'not reachable: other',
      detail: { local: { healthy: true }, other: { healthy: false, error: 'no answer within 2000 ms' } },
    })
    await ended.promise
  })

  it("tells a provider's own words only where it kept its contract: what else it throws may name a path", async () => {
    const thrown = [
      Object.assign(new Error('ENOENT: open /secrets/openai.key'), { code: 'ENOENT' }),
      svcError('MODEL_FAILED', 'it is down'),
    ]
    for (const [at, error] of ['provider "other" failed', 'it is down'].entries()) {
      await using callsHost = await startCallsHost({ give: [provider(() => Promise.reject(thrown[at]!))] })
      expect((await probed(callsHost)).detail?.other).to.deep.equal({ healthy: false, error })
    }
  })

  it('probes once for all who ask at once or soon after', async () => {
    let probes = 0
    await using callsHost = await startCallsHost({ give: [provider(async () => void probes++)] })
    await Promise.all([probed(callsHost), probed(callsHost), probed(callsHost)])
    expect((await probed(callsHost)).status).to.equal('healthy')
    expect(probes).to.equal(1)
  })

  it('counts what each provider was asked', async () => {
    await using callsHost = await startCallsHost()
    await callsHost.say('hello')
    const { detail } = await checkOf(callsHost).status!(testContext())
    expect(detail).to.deep.equal({ local: { healthy: true, requests: 1 } })
  })

  it('adds what other workers asked and what it inherited, and asks no provider for a health check', async () => {
    let gathered = 0
    const hooks: { metrics?: HookCallers<PeersHooks> } = {}
    const peers = definePlugin({
      provides: Peers,
      setup(scope) {
        hooks.metrics = scope.hooks
        const others: WorkerMetrics[] = [{ 'model-calls': [['local', 20]] }, { 'model-calls': [['local', 300]], ended: true }, {}]
        return {
          broadcast: async () => {},
          acquire: async () => true,
          release: async () => {},
          self: async () => 'w1',
          async *ask() {},
          async metrics(ctx) {
            gathered++
            return [await scope.hooks.metrics({}, ctx), ...others]
          },
        }
      },
    })
    await using callsHost = await startCallsHost({ give: [{ name: 'test:peers', use: peers }] })
    await callsHost.say('hello')
    await hooks.metrics!.inherit({ 'model-calls': [['local', 4000]] }, testContext())
    await probed(callsHost)
    expect(gathered).to.equal(0)
    const { detail } = await checkOf(callsHost).status!(testContext())
    expect(detail).to.deep.equal({ local: { healthy: true, requests: 4321 } })
  })
})
