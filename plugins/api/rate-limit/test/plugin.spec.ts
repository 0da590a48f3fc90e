import type { CallContext } from '@svc/core'
import { Counts, Limits } from '@svc/core/contracts'
import { service, testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const startHost = (rateLimit: object = {}) =>
  testHost(['store-memory', 'rate-limit'].map(pluginFolder), { config: { server: { rate_limit: { ...rateLimit } } } })
const from = (address: string): CallContext => testContext({ principal: { id: 'anonymous', scopes: ['*'], address } })

describe('the plugin rate-limit', () => {
  it('limits nothing until it is switched on', async () => {
    await using off = await startHost()
    await using on = await startHost({ enabled: true })
    expect(await off.service(Limits).isActive(testContext())).to.equal(false)
    expect(await on.service(Limits).isActive(testContext())).to.equal(true)
  })

  it('allows 60 requests a minute where nothing else is said', async () => {
    await using host = await startHost({ enabled: true })
    const limits = host.service(Limits)
    const answers = await Promise.all(Array.from({ length: 70 }, () => limits.take(from('192.0.2.1'))))
    expect(answers.filter(answer => answer.allowed)).to.have.length(60)
    expect(answers.at(-1)).to.include({ allowed: false, limit: 60, window: 60, remaining: 0 })
    expect(await limits.take(from('192.0.2.2'))).to.include({ allowed: true, remaining: 59 })
  })

  it('allows 1,000 requests a day where nothing else is said', async () => {
    await using host = await startHost({ enabled: true, requests_per_minute: 5000 })
    const limits = host.service(Limits)
    const answers = await Promise.all(Array.from({ length: 1010 }, () => limits.take(from('192.0.2.1'))))
    expect(answers.filter(answer => answer.allowed)).to.have.length(1000)
    expect(answers.at(-1)).to.include({ allowed: false, limit: 1000, window: 86_400 })
  })

  it('is UNAVAILABLE with a store that is down', async () => {
    const down = () => Promise.reject(new Error('down'))
    await using host = await testHost([pluginFolder('rate-limit')], {
      give: [service(Counts, { count: down })],
      config: { server: { rate_limit: { enabled: true } } },
    })
    const failure: unknown = await host
      .service(Limits)
      .take(from('192.0.2.1'))
      .catch((error: unknown) => error)
    expect(failure).to.include({ code: 'UNAVAILABLE' })
  })

  it('refuses a configuration that makes no sense, with its place', async () => {
    for (const wrong of [{ requests_per_minute: 0 }, { requests_per_day: 1.5 }, { by: 'mood' }, { enable: true }]) {
      const failure: unknown = await startHost(wrong).catch((error: unknown) => error)
      expect(failure, JSON.stringify(wrong)).to.include({ code: 'START_FAILED' })
      expect(String(failure)).to.contain(`server.rate_limit.${Object.keys(wrong)[0]}`)
    }
  })
})
