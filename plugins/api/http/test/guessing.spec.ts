import { setImmediate as wait } from 'node:timers/promises'
import { expect } from 'chai'
import { type AuthScheme, AuthSchemes } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { call, serve, signalOf } from './support/client.ts'
import { keys, who } from './support/who.ts'

const KEYS = {
  all: { id: 'all', scopes: ['*'] },
  reader: { id: 'reader', scopes: ['read'] },
  talker: { id: 'talker', scopes: ['chat'] },
}
const scheme = keys('x-api-key', KEYS)
const serveKeys = (key: AuthScheme = scheme) =>
  serve({ who }, { auth: { enabled: true }, trusted_proxies: ['127.0.0.1'] }, undefined, [item(AuthSchemes, 'key', key)])

describe('guessing', () => {
  const from = (address: string, value: string) => ({ 'x-api-key': value, 'x-forwarded-for': address })

  it('is slowed after ten refused credentials a minute and address; those seen good from there pass, and other addresses', async () => {
    await using server = await serveKeys()
    const guess = (address: string, value = 'wrong') => call(`${server.url}/who`, { headers: from(address, value) })
    expect((await guess('203.0.113.7', 'reader')).status).to.equal(200)
    expect((await guess('203.0.113.9', 'talker')).body.error_code).to.equal('FORBIDDEN')
    for (let i = 0; i < 10; i++) expect((await guess('203.0.113.7')).status).to.equal(401)
    const { status, body, headers } = await guess('203.0.113.7')
    expect([status, body.error_code]).to.deep.equal([429, 'RATE_LIMITED'])
    expect(body.details).to.include({ limit: 10, window: 60 })
    expect(Number(headers.get('retry-after')))
      .to.be.within(1, 60)
      .and.equal((body.details as { retry_after: number }).retry_after)
    expect((await guess('203.0.113.7', 'reader')).status).to.equal(200)
    expect((await guess('203.0.113.7', 'all')).status, 'good, and never seen').to.equal(429)
    expect((await guess('203.0.113.7', 'talker')).status, 'seen from another address').to.equal(429)
    expect((await guess('203.0.113.8')).status).to.equal(401)
    expect((await call(`${server.url}/who`, { headers: { 'x-forwarded-for': '203.0.113.7' } })).status, 'without any').to.equal(
      401
    )
  })

  it('many times at once is checked no more often than it may fail', async () => {
    const { promise: held, resolve: release } = signalOf()
    let asked = 0
    const slow: AuthScheme = {
      ...scheme,
      async authenticate(request, ctx) {
        asked++
        await held
        return scheme.authenticate(request, ctx)
      },
    }
    await using server = await serveKeys(slow)
    const values = [...Array.from({ length: 30 }, (_, n) => `wrong-${n}`), 'reader']
    const answers = values.map(value => call(`${server.url}/who`, { headers: from('203.0.113.7', value) }))
    while (asked < 10) await wait()
    release()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect([asked, statuses.filter(status => status === 429).length]).to.deep.equal([10, 21])
  })

  it('from one /64 is guessing from one place', async () => {
    await using server = await serveKeys()
    const guess = (address: string) => call(`${server.url}/who`, { headers: from(address, 'wrong') })
    for (let i = 0; i < 10; i++) expect((await guess(`2001:db8::${i}:1`)).status).to.equal(401)
    expect((await guess('2001:db8:0:0:ffff::')).status).to.equal(429)
    expect((await guess('2001:db8:0:1::')).status).to.equal(401)
  })
})
