import { once } from 'node:events'
import { svcError } from '@svc/core'
import { type AuthScheme, AuthSchemes, Mounts, type Route } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { serve, signalOf } from './support/client.ts'

describe('a stream without an end', () => {
  /** Keys that can be revoked; revoked keys report no change. */
  function takeable() {
    const taken = new Set<string>()
    const ended = new Set<string>()
    let news = signalOf()
    const scheme: AuthScheme = {
      headers: ['x-api-key'],
      challenge: 'Key',
      async authenticate({ headers }) {
        const id = headers['x-api-key'] ?? ''
        if (id === '' || taken.has(id) || ended.has(id)) throw svcError('AUTHENTICATION_FAILED', 'it is not valid')
        return { id, scopes: ['read', 'tools'], ...(id === 'late' ? { expires: Date.now() + 20 } : {}) }
      },
      async *changes({ signal }) {
        for (; !signal.aborted; news = signalOf()) {
          yield null
          await Promise.race([news.promise, once(signal, 'abort')])
        }
      },
    }
    const takeBack = (id: string) => {
      taken.add(id)
      news.resolve()
    }
    return { scheme, takeBack, end: (id: string) => void ended.add(id) }
  }

  it('is cut off once its credential was taken back or has expired; others go on, and so does a stream that ends by itself', async () => {
    const { scheme, takeBack, end } = takeable()
    const go = signalOf()
    const lines: string[] = []
    async function* stream() {
      yield 'begun'
      await go.promise
      yield ', ended'
    }
    const flow: Route = { method: 'GET', path: '/flow', summary: 'Flows', scope: 'read', stream }
    const raw = item(Mounts, 'raw', {
      path: '/raw',
      scope: 'tools',
      streams: [{ method: 'GET', header: 'accept', holds: 'event-stream' }],
      async handle(_request, response) {
        for await (const text of stream()) response.write(text)
        response.end()
      },
    })
    const routes = { flow, river: { ...flow, path: '/river', endless: true } }
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    await using served = await serve(routes, { auth: { enabled: true }, shutdown_timeout: 0.1 }, log, [
      item(AuthSchemes, 'key', scheme),
      raw,
    ])
    const read = async (path: string, id: string) => {
      const answer = await fetch(`${served.url}${path}`, { headers: { 'x-api-key': id, accept: 'text/event-stream' } })
      return { text: answer.text().catch(() => 'cut off') }
    }
    const [mine, mount, other, short, late] = [
      await read('/river', 'anna'),
      await read('/raw', 'anna'),
      await read('/river', 'ben'),
      await read('/flow', 'anna'),
      await read('/river', 'late'),
    ]
    end('late')
    expect(await late.text).to.equal('cut off')
    takeBack('anna')
    expect(await Promise.all([mine.text, mount.text])).to.deep.equal(Array(2).fill('cut off'))
    go.resolve()
    expect(await Promise.all([other.text, short.text])).to.deep.equal(Array(2).fill('begun, ended'))
    const cut = lines.map(line => JSON.parse(line)).filter(line => line.error_code === 'AUTHENTICATION_FAILED')
    expect(cut.map(line => `${line.route} ${line.principal}`).toSorted()).to.deep.equal([
      '/raw anna',
      '/river anna',
      '/river late',
    ])
  })

  it('is looked at once at a time, however many changes a scheme reports', async () => {
    let now = 0
    let most = 0
    const reported = signalOf()
    const scheme: AuthScheme = {
      headers: ['x-api-key'],
      challenge: 'Key',
      async authenticate() {
        most = Math.max(most, ++now)
        await new Promise(resolve => setImmediate(resolve))
        now--
        return { id: 'anna', scopes: ['read'] }
      },
      async *changes() {
        for (let times = 0; times < 1_000; times++) yield null
        reported.resolve()
      },
    }
    async function* stream() {
      yield 'begun'
      await reported.promise
      yield ', ended'
    }
    const river: Route = { method: 'GET', path: '/river', summary: 'Flows', scope: 'read', endless: true, stream }
    await using served = await serve({ river }, { auth: { enabled: true } }, undefined, [item(AuthSchemes, 'key', scheme)])
    const answer = await fetch(`${served.url}/river`, { headers: { 'x-api-key': 'anna' } })
    expect([await answer.text(), most]).to.deep.equal(['begun, ended', 1])
  })
})
