import { Checks, type Provider, Providers } from '@svc/core/contracts'
import { item, testUse } from '@svc/core/testing'
import { expect } from 'chai'
import { chatHouse } from './house.ts'

/** A provider that answers whoever asks how it is like this. */
const provider = (probe: Provider['probe']) =>
  item<Provider>(Providers, 'other', {
    features: { tool_calling: false, streaming: true, vision: false },
    models: async () => ({ models: [], open: true }),
    countTokens: async () => 0,
    async *chat() {},
    probe,
  })

const probed = (house: Awaited<ReturnType<typeof chatHouse>>) => house.host.slot(Checks).get('providers')!.probe(testUse())

describe('the check of the providers', () => {
  it('gives up one that does not answer after two seconds, and ends its probe', async () => {
    const ended = Promise.withResolvers<void>()
    const hang: Provider['probe'] = ({ signal }) => {
      signal.addEventListener('abort', () => ended.resolve())
      return new Promise(() => {})
    }
    await using house = await chatHouse({ give: [provider(hang)] })
    expect(await probed(house)).to.deep.equal({
      status: 'degraded',
      reason: 'not reachable: other',
      detail: { local: { healthy: true, requests: 0 }, other: { healthy: false, error: 'no answer within 2000 ms' } },
    })
    await ended.promise
  })

  it('probes once for all who ask at once or soon after', async () => {
    let probes = 0
    await using house = await chatHouse({ give: [provider(async () => void probes++)] })
    await Promise.all([probed(house), probed(house), probed(house)])
    expect((await probed(house)).status).to.equal('healthy')
    expect(probes).to.equal(1)
  })

  it('counts what each provider was asked', async () => {
    await using house = await chatHouse()
    await house.stream('hello')
    expect((await probed(house)).detail?.local).to.deep.equal({ healthy: true, requests: 1 })
  })
})
