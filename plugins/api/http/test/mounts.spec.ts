import { once } from 'node:events'
import { request } from 'node:http'
import { type Mount, Mounts, Routes } from '@svc/core/contracts'
import { item, testHost } from '@svc/testing'
import { expect } from 'chai'
import { call, urlOf } from './support/client.ts'

const says = (word: string, path: string): Mount => ({
  path,
  async handle(request, response) {
    let size = 0
    for await (const chunk of request) size += (chunk as Buffer).length
    response.end(`${word} ${request.method} ${request.url} ${size}`)
  },
})

async function serveWith(mounts: Record<string, Mount>, server = {}) {
  const route = { method: 'GET' as const, path: '/raw/route', summary: 'A route', handle: async () => ({ text: 'route' }) }
  const give = [...Object.entries(mounts).map(([name, mount]) => item(Mounts, name, mount)), item(Routes, 'route', route)]
  const host = await testHost([new URL('..', import.meta.url)], { give, config: { server: { port: 0, ...server } } })
  return { url: await urlOf(host), [Symbol.asyncDispose]: () => host.close() }
}

describe('mounts', () => {
  it('take raw requests below their path, bodies of any kind, the longest path first', async () => {
    await using server = await serveWith({ a: says('a', '/raw'), b: says('b', '/raw/deep') })
    const { text, headers } = await call(`${server.url}/raw/x?y=1`, { method: 'PUT', body: 'no json at all' })
    expect(text).to.equal('a PUT /raw/x?y=1 14')
    expect(headers.get('x-request-id')).to.be.a('string')
    expect((await call(`${server.url}/raw/deep/er`)).text).to.equal('b GET /raw/deep/er 0')
    expect((await call(`${server.url}/rawest`)).status).to.equal(404)
  })

  it('that are off say why below their path, where routes of others are served', async () => {
    const off = 'the show is off; run `show on`'
    await using server = await serveWith({ raw: { path: '/raw', off }, deep: says('deep', '/raw/deep') })
    const { status, body } = await call(`${server.url}/raw/x`, { method: 'POST' })
    expect([status, body.error_code]).to.deep.equal([404, 'NOT_FOUND'])
    expect(body.error).to.equal(`there is no route POST /raw/x: ${off}`)
    expect((await call(`${server.url}/rawest`)).body.error).to.equal('there is no route GET /rawest')
    expect((await call(`${server.url}/raw/route`)).text).to.equal('route')
    expect((await call(`${server.url}/raw/route`, { method: 'POST' })).status).to.equal(405)
    expect((await call(`${server.url}/raw/deep/er`)).text).to.equal('deep GET /raw/deep/er 0')
  })

  it('that document the API are where a browser gets from /; without one, / is no page', async () => {
    const accept = { accept: 'text/html,*/*;q=0.8' }
    await using server = await serveWith({ a: says('a', '/raw'), guide: { ...says('guide', '/guide'), guide: true } })
    const { status, headers } = await call(`${server.url}/`, { headers: accept, redirect: 'manual' })
    expect([status, headers.get('location')]).to.deep.equal([302, '/guide'])
    expect((await call(`${server.url}/`)).body.error_code).to.equal('NOT_FOUND')
    await using none = await serveWith({ a: says('a', '/raw') })
    expect((await call(`${none.url}/`, { headers: accept })).body.error_code).to.equal('NOT_FOUND')
  })

  it('leave an answer in one piece to the server, and write the others themselves: each with what every answer carries', async () => {
    const lazy: Mount = {
      path: '/lazy',
      async answer(request) {
        if (request.method === 'GET')
          return {
            status: 203,
            headers: { 'x-own': 'yes', 'Content-Length': '1', Connection: 'x-own', Date: 'never' },
            text: 'whole',
          }
        return async response => void response.writeHead(202, { 'x-own': 'yes' }).end('written')
      },
    }
    await using server = await serveWith({ lazy })
    for (const [method, status, said] of [
      ['GET', 203, 'whole'],
      ['POST', 202, 'written'],
    ] as const) {
      const { text, headers, ...answer } = await call(`${server.url}/lazy`, { method })
      expect([answer.status, text, headers.get('x-own')]).to.deep.equal([status, said, 'yes'])
      expect(headers.get('x-request-id')).to.be.a('string')
      expect(headers.get('date')).to.not.equal('never')
      expect(headers.get('connection')).to.not.equal('x-own')
      expect(headers.get('x-content-type-options')).to.equal('nosniff')
    }
  })

  it('leave a path to its route', async () => {
    await using server = await serveWith({ a: says('a', '/raw') })
    expect((await call(`${server.url}/raw/route`)).text).to.equal('route')
  })

  it('say which of their requests open a stream without an end: those count as streams', async () => {
    const begun = Promise.withResolvers<void>()
    const flow: Mount = {
      path: '/flow',
      streams: [{ method: 'GET', header: 'accept', holds: 'text/event-stream' }],
      async handle(request, response) {
        response.flushHeaders()
        begun.resolve()
        if (request.headers.accept === 'text/event-stream') await once(response, 'close')
        else response.end('short')
      },
    }
    await using server = await serveWith({ flow }, { max_streams_per_principal: 1 })
    const stream = request(`${server.url}/flow`, { agent: false, headers: { accept: 'text/event-stream' } }).end()
    stream.on('error', () => {})
    await begun.promise
    const refused = await call(`${server.url}/flow`, { headers: { accept: 'text/event-stream' } })
    expect([refused.status, refused.body.details]).to.deep.equal([429, { limit: 1, window: 0, retry_after: 1 }])
    expect((await call(`${server.url}/flow`)).text).to.equal('short')
    stream.destroy()
  })

  it('that fail get an internal error, and the server keeps working', async () => {
    await using server = await serveWith({
      bad: {
        path: '/bad',
        handle: async () => {
          throw new Error('secret')
        },
      },
    })
    const { status, text } = await call(`${server.url}/bad`)
    expect(status).to.equal(500)
    expect(text).to.contain('INTERNAL_ERROR').and.not.contain('secret')
    expect((await call(`${server.url}/raw/route`)).status).to.equal(200)
  })
})
