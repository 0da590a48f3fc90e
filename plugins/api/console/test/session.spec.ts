import { mock } from 'node:test'
import { type RunningHost, systemContext } from '@svc/core'
import { AuthSchemes, Routes, Store, Tokens } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { CODE_MS, createSessions, isCode, makeCode, SESSION_MS } from '../src/session.ts'

const ctx = systemContext(new AbortController().signal)
const OWN = new URL('..', import.meta.url)
const STORE = new URL('../../../storage/memory/', import.meta.url)
const BEARER = new URL('../../auth-bearer/', import.meta.url)
const DAY = 86_400_000
const REQUEST = { method: 'GET', path: '/api/v1/me', query: '', address: '127.0.0.1' }

describe('sessions of the console', () => {
  let host: RunningHost
  let now: number
  const pass = (ms: number) => mock.timers.setTime((now += ms))
  beforeEach(async () => {
    host = await testHost([STORE])
    now = Date.now()
    mock.timers.enable({ apis: ['Date'], now })
  })
  afterEach(async () => {
    mock.timers.reset()
    await host.close()
  })
  const sessions = () => createSessions(host.service(Store), ctx)

  it('open at every worker, until they expire or end', async () => {
    const [one, two] = [await sessions(), await sessions()]
    expect(one.cookie)
      .to.equal(two.cookie)
      .and.match(/^svc_console_[0-9a-f]{8}$/)
    const value = await one.seal('the-credential', now + SESSION_MS)
    const opened = await two.open(value, ctx)
    expect(opened).to.include({ credential: 'the-credential', expires: now + SESSION_MS })
    await one.end(opened!, ctx)
    expect(await one.open(value, ctx)).to.equal(undefined)
    const later = await two.seal('the-credential', now + SESSION_MS)
    pass(SESSION_MS + 1)
    expect(await two.open(later, ctx)).to.equal(undefined)
  })

  it('are sealed with a new key each day; a key opens cookies as long as one can be valid', async () => {
    const [one, two] = [await sessions(), await sessions()]
    const keyOf = (value: string) => value.split('.')[1]
    const first = await one.seal('a', now + 3 * DAY)
    pass(DAY)
    const second = await one.seal('a', now + 3 * DAY)
    expect(keyOf(second)).not.to.equal(keyOf(first))
    // the other worker learns the new key when it meets it
    await new Promise(resolve => setTimeout(resolve, 1_050))
    expect(await two.open(second, ctx)).to.include({ credential: 'a' })
    expect(await two.open(first, ctx)).to.include({ credential: 'a' })
    pass(SESSION_MS)
    expect(await two.open(first, ctx)).to.equal(undefined)
    expect(await two.open(second, ctx)).to.include({ credential: 'a' })
  })

  it('begin with codes that are valid once, for 30 seconds, and whose text the store does not have', async () => {
    const store = host.service(Store)
    const [one, two] = [await sessions(), await sessions()]
    const { code } = await makeCode(store, ctx)
    expect(isCode(code)).to.equal(true)
    expect(JSON.stringify(await store.range('console_codes', { limit: 10 }, ctx))).not.to.contain(code)
    expect(await one.knows(code, ctx)).to.equal(true)
    expect(await Promise.all([one.use(code, ctx), two.use(code, ctx)])).to.have.members([true, false])
    expect(await one.knows(code, ctx)).to.equal(false)
    const late = await makeCode(store, ctx)
    pass(CODE_MS)
    expect(await one.knows(late.code, ctx)).to.equal(false)
    expect(await one.use(late.code, ctx)).to.equal(false)
    for (const text of ['', 'console_', `console_${'A'.repeat(42)}`, `svc_${'A'.repeat(43)}`])
      expect(isCode(text)).to.equal(false)
  })
})

describe('the scheme of the console', () => {
  it('hands the sealed token to the other schemes, for requests of its own page only', async () => {
    const host = await testHost([STORE, BEARER, OWN])
    try {
      const scheme = host.slot(AuthSchemes).get('console_session')!
      const { token } = await host.service(Tokens).create({ name: 'anna', scopes: ['read'], ttlMs: DAY }, ctx)
      const sessions = await createSessions(host.service(Store), ctx)
      const cookie = `other=1; ${sessions.cookie}=${await sessions.seal(token, Date.now() + SESSION_MS)}`
      const ask = (fetchSite?: string, headers: Record<string, string> = { cookie }) =>
        scheme
          .authenticate({ ...REQUEST, headers, ...(fetchSite === undefined ? {} : { fetchSite }) }, ctx)
          .catch((error: { code: string }) => error.code)
      expect(await ask('same-origin')).to.deep.include({ id: 'token:anna', scopes: ['read'] })
      for (const site of [undefined, 'cross-site', 'same-site', 'none']) expect(await ask(site), site).to.equal('FORBIDDEN')
      expect(await ask('same-origin', { cookie, authorization: `Bearer ${token}` })).to.equal(undefined)
      await host.service(Tokens).revoke('anna', ctx)
      expect(await ask('same-origin')).to.equal('AUTHENTICATION_FAILED')
      expect(
        host
          .slot(Routes)
          .entries()
          .map(([, route]) => `${route.method} ${route.path} ${route.scope}`)
      ).to.have.members([
        'POST /api/v1/console/session read',
        'DELETE /api/v1/console/session read',
        'GET /api/v1/console/login undefined',
        'POST /api/v1/console/login undefined',
        'GET /api/v1/console/pages read',
        'GET /api/v1/console/pages/:name/view read',
      ])
    } finally {
      await host.close()
    }
  })
})
