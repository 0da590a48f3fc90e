import { expect } from 'chai'
import { definePlugin } from '@svc/core'
import { type PublicError, Http, type Route, Routes } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { call, post, serve, urlOf, ctx } from './support/client.ts'

describe('routes', () => {
  it('come and go while the server runs', async () => {
    const remove: { last?: () => void } = {}
    const route: Route = { method: 'GET', path: '/late', summary: 'Late', handle: async () => ({ text: 'here' }) }
    const adding: Route = {
      method: 'POST',
      path: '/switch',
      summary: 'Adds or removes',
      async handle() {
        if (remove.last) remove.last()
        else remove.last = add()
        return {}
      },
    }
    let add = () => () => {}
    const own = definePlugin({
      setup(scope) {
        scope.add(Routes, 'switch', adding)
        add = () => scope.add(Routes, 'late', route)
      },
    })
    await using host = await testHost([new URL('..', import.meta.url), { name: 'own', use: own }], {
      config: { server: { port: 0 } },
    })
    const url = await urlOf(host)
    const seen = []
    for (let at = 0; at < 3; at++) {
      seen.push((await call(`${url}/late`)).status)
      await post(`${url}/switch`, '')
    }
    expect(seen).to.deep.equal([404, 200, 404])
  })

  it('of the same place: the first one serves, and the log names the other', async () => {
    const lines: string[] = []
    const route = (text: string, path: string): Route => ({
      method: 'GET',
      path,
      summary: 'Twin',
      handle: async () => ({ text }),
    })
    await using served = await serve(
      { one: route('one', '/t/:a'), two: route('two', '/t/:b') },
      {},
      { destination: { write: line => void lines.push(line) } }
    )
    expect((await call(`${served.url}/t/x`)).text).to.equal('one')
    expect(lines.map(line => JSON.parse(line)).find(line => line.route === 'two')).to.include({ level: 50, first: 'one' })
  })

  it('can take the rest of the path, with its slashes, decoded; other routes win', async () => {
    const route = (text: string, path: string, method: Route['method'] = 'GET'): Route => ({
      method,
      path,
      summary: 'One',
      handle: async ({ params }) => ({ text: `${text} ${params.rest ?? params.a ?? ''}` }),
    })
    await using served = await serve({
      rest: route('rest', '/t/*rest'),
      put: route('put', '/t/*rest', 'PUT'),
      exact: route('exact', '/t/exact'),
      below: route('below', '/t/x/:a/y'),
    })
    const get = async (path: string) => (await call(`${served.url}${path}`)).text
    expect(await get('/t/a/b:c/d')).to.equal('rest a/b:c/d')
    expect(await get('/t/a%2Fb%3Ac')).to.equal('rest a/b:c')
    expect(await get('/t/exact')).to.equal('exact ')
    expect((await call(`${served.url}/t/a/b`, { method: 'PUT' })).text).to.equal('put a/b')
    expect((await call(`${served.url}/t/a/b`, { method: 'DELETE' })).status).to.equal(405)
    expect((await call(`${served.url}/t`)).status).to.equal(404)
  })

  it('that are literal win over those with parameters', async () => {
    const route = (text: string, path: string): Route => ({ method: 'GET', path, summary: 'One', handle: async () => ({ text }) })
    await using served = await serve({ any: route('any', '/t/:a'), exact: route('exact', '/t/exact') })
    expect((await call(`${served.url}/t/exact`)).text).to.equal('exact')
    expect((await call(`${served.url}/t/other`)).text).to.equal('any')
  })
})

describe('the service Http', () => {
  it('counts requests, and tells its address', async () => {
    await using served = await serve({ hi: { method: 'GET', path: '/hi', summary: 'Hi', handle: async () => ({ text: 'hi' }) } })
    for (let at = 0; at < 3; at++) await call(`${served.url}/hi`)
    const http = served.host.service(Http)
    expect(await http.metrics(ctx)).to.deep.equal({ requestsTotal: 3, requestsActive: 0 })
    expect(await http.address(ctx)).to.deep.include({ host: '127.0.0.1' })
  })

  it('explains an error for those who send it in the midst of an answer', async () => {
    await using served = await serve({})
    const error: PublicError = {
      code: 'MODEL_FAILED',
      message: 'no',
      details: { kind: 'timeout', provider: 'p', retryable: true },
    }
    const explained = await served.host.service(Http).explain(error, ctx)
    expect(explained).to.deep.equal({
      status: 503,
      record: { success: false, error: 'no', error_code: 'PROVIDER_ERROR', details: { provider: 'p', retryable: true } },
    })
  })

  it('tells each code once, with its status', async () => {
    await using served = await serve({})
    const codes = await served.host.service(Http).codes(ctx)
    expect(new Set(codes.map(code => code.code)).size).to.equal(codes.length)
    expect(codes.find(code => code.code === 'PROVIDER_ERROR')).to.include({ status: 503 })
  })
})
