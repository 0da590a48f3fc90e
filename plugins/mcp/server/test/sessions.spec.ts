import { setTimeout as pause } from 'node:timers/promises'
import { AuthSchemes, type Resource, Resources } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { startMcpHost, toolOf } from './support/host.ts'
import { asked, back, begin, LEGACY, post, texts, type WireSession } from './support/wire.ts'

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } },
})

/** Whoever names himself is believed. */
const named = item(AuthSchemes, 'named', {
  headers: ['x-name'],
  challenge: 'Name',
  authenticate: async ({ headers }: { headers: Readonly<Record<string, string>> }) =>
    headers['x-name'] === undefined ? undefined : { id: headers['x-name'], scopes: ['tools'] },
})
const as = (name: string) => ({ headers: { 'x-name': name } })
const people = (sessions = {}) =>
  startMcpHost({ give: [named], server: { auth: { enabled: true } }, mcp: { sessions, sets: { some: ['echo'] } } })

const isAlive = async (session: WireSession) => (await session.request('ping')).status === 200
const UNKNOWN = { code: -32001, message: 'Session not found: begin a new one with initialize' }

describe('a session', () => {
  it('has a name that cannot be guessed, and ends when its client says so', async () => {
    await using mcpHost = await startMcpHost()
    const session = await begin(mcpHost.url)
    expect(session.id).to.match(/^[\x21-\x7e]{36,}$/)
    expect(session.id).to.not.equal((await begin(mcpHost.url)).id)
    expect(await isAlive(session)).to.equal(true)
    expect((await session.end()).status).to.equal(200)
    const gone = await session.request('tools/list')
    expect([gone.status, gone.body.error]).to.deep.equal([404, UNKNOWN])
    expect((await session.open()).status).to.equal(404)
    expect((await session.end()).status).to.equal(404)
  })

  for (const [form, meta] of [
    ['a call', {}],
    ['a call that is followed', { _meta: { progressToken: 1 } }],
  ] as const)
    it(`refuses a second request under the id of ${form} that is under way, and answers the first`, async () => {
      const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const slow = toolOf(async () => {
        begun.resolve()
        await go.promise
        return { content: [{ type: 'text', text: 'done' }] }
      })
      await using mcpHost = await startMcpHost({ tools: { slow } })
      const session = await begin(mcpHost.url)
      const ask = () => session.request('tools/call', { name: 'slow', arguments: {}, ...meta }, 7)
      const first = ask()
      await begun.promise
      const second = await ask()
      expect([second.status, second.body.error]).to.deep.equal([
        400,
        { code: -32600, message: 'Invalid Request: a request with this id is already running in the session' },
      ])
      go.resolve()
      expect((await first).body.result).to.have.deep.property('content', [{ type: 'text', text: 'done' }])
      expect((await ask()).status).to.equal(200)
    })

  it('of another principal is not there, word for word as one that never was', async () => {
    await using node = await people()
    const ada = await begin(node.url, as('ada'))
    const eve = await begin(node.url, as('eve'))
    const stolen = (id: string) => ({ headers: { ...eve.headers, 'mcp-session-id': id } })
    const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const of = async (id: string) => {
      const posted = await back(await post(node.url, list, stolen(id)))
      const opened = await back(await fetch(`${node.url}/mcp`, stolen(id)))
      const ended = await back(await fetch(`${node.url}/mcp`, { method: 'DELETE', ...stolen(id) }))
      return [posted, opened, ended].map(({ status, text }) => ({ status, text }))
    }
    const hers = await of(ada.id)
    expect(hers).to.deep.equal(await of(crypto.randomUUID()))
    expect(hers.map(her => her.status)).to.deep.equal([404, 404, 404])
    expect(await isAlive(ada)).to.equal(true)
  })

  it('is known at its own address only', async () => {
    await using mcpHost = await startMcpHost({ mcp: { sets: { some: ['echo'] } } })
    const session = await begin(mcpHost.url)
    const list = { id: 1, method: 'tools/list' }
    expect((await session.send(list)).status).to.equal(200)
    expect((await session.send(list, { path: '/mcp/some' })).status).to.equal(404)
  })

  it('of one principal gives way, idle for longest first, where there are too many; others keep theirs', async () => {
    await using node = await people({ max_per_principal: 3 })
    const eve = await begin(node.url, as('eve'))
    const [first, second] = [await begin(node.url, as('ada')), await begin(node.url, as('ada'))]
    await begin(node.url, as('ada'))
    expect(await isAlive(first)).to.equal(true) // and so idle for less long than the second
    await begin(node.url, as('ada'))
    expect(await isAlive(second)).to.equal(false)
    expect(await isAlive(first)).to.equal(true)
    expect(await isAlive(eve)).to.equal(true)
    const many = await Promise.all(Array.from({ length: 12 }, () => begin(node.url, as('bob'))))
    const alive = await Promise.all(many.map(isAlive))
    expect(alive.filter(Boolean)).to.have.length(3)
  })

  it('counts with those of all addresses', async () => {
    await using node = await people({ max_per_principal: 2 })
    const [first, second] = [await begin(node.url, as('ada')), await begin(node.url, { ...as('ada'), path: '/mcp/some' })]
    const third = await begin(node.url, { ...as('ada'), path: '/mcp/some' })
    expect([await isAlive(first), await isAlive(second), await isAlive(third)]).to.deep.equal([false, true, true])
  })

  it('gives way to those of others where all together are too many; none that has a stream open does', async () => {
    await using node = await people({ max: 2 })
    const ada = await begin(node.url, as('ada'))
    const eve = await begin(node.url, as('eve'))
    const stream = texts(await ada.open())
    const bob = await begin(node.url, as('bob'))
    expect([await isAlive(ada), await isAlive(eve), await isAlive(bob)]).to.deep.equal([true, false, true])
    const second = texts(await bob.open())
    const full = await back(await post(node.url, INITIALIZE, as('eve')))
    expect([full.status, full.headers.get('retry-after'), full.body.error?.code]).to.deep.equal([503, '5', -32000])
    await ada.end()
    await begin(node.url, as('eve'))
    await bob.end()
    expect([(await stream.next()).done, (await second.next()).done]).to.deep.equal([false, false])
  })

  it('gives way though a client left before its answer began', async () => {
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const asking = toolOf(async () => ({ content: [] }), {
      async *run() {
        begun.resolve()
        await go.promise
        const params = { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
        yield { type: 'input', requests: { who: { method: 'elicitation/create', params } } }
      },
    })
    await using node = await startMcpHost({ tools: { asking }, mcp: { sessions: { max_per_principal: 1 } } })
    const session = await begin(node.url, { capabilities: { elicitation: {} } })
    const leaving = new AbortController()
    const call = { id: 7, method: 'tools/call', params: { name: 'asking', arguments: {} } }
    const left = session.send(call, { signal: leaving.signal }).catch((error: Error) => error.name)
    await begun.promise
    leaving.abort()
    expect(await left).to.equal('AbortError')
    // the server has seen that the client has left
    await pause(200)
    go.resolve()
    await pause(200)
    expect((await session.request('ping', {}, 7)).status).to.equal(200)
    await begin(node.url)
    expect(await isAlive(session)).to.equal(false)
  })

  it('that is idle ends, and so do its subscriptions', async () => {
    const watching = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const clock: Resource = {
      uri: 'test://clock',
      read: async () => [],
      async *changes({ signal }) {
        watching.resolve()
        yield 'test://clock'
        await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
        ended.resolve()
      },
    }
    await using mcpHost = await startMcpHost({
      give: [item(Resources, 'clock', clock)],
      mcp: { sessions: { idle_timeout_ms: 2_000 } },
    })
    const session = await begin(mcpHost.url)
    await session.request('resources/subscribe', { uri: 'test://clock' })
    await watching.promise
    await ended.promise
    expect(await isAlive(session)).to.equal(false)
  })

  it('whose handshake fails is none', async () => {
    await using mcpHost = await startMcpHost()
    const broken = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 7 } })
    const reported = await back(await post(mcpHost.url, broken))
    const id = reported.headers.get('mcp-session-id') ?? 'none'
    expect(reported.body.error).to.be.an('object')
    const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    expect((await post(mcpHost.url, list, { headers: { 'mcp-session-id': id } })).status).to.be.within(400, 404)
  })

  it('answers calls while its stream is open, and ends the stream with itself', async () => {
    await using mcpHost = await startMcpHost()
    const session = await begin(mcpHost.url)
    const stream = texts(await session.open())
    expect((await session.request('tools/call', { name: 'echo', arguments: { text: 'x' } })).body.result).to.deep.include({
      content: [{ type: 'text', text: 'x' }],
    })
    await session.end()
    expect((await stream.next()).value).to.match(/^retry: \d+$/)
    expect((await stream.next()).done).to.equal(true)
  })

  it('speaks the version that its client asked for, where it knows it', async () => {
    await using mcpHost = await startMcpHost()
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
      const reported = await back(await post(mcpHost.url, INITIALIZE.replace(LEGACY, version)))
      expect(reported.body.result).to.include({ protocolVersion: version })
    }
    const answer = await back(await post(mcpHost.url, INITIALIZE.replace(LEGACY, '1999-01-01')))
    expect(answer.body.result).to.include({ protocolVersion: '2025-11-25' })
  })
})

describe('streams without an end', () => {
  it('close with a hint when the server is about to end, in both eras', async () => {
    const hold = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const slow = toolOf(async () => {
      begun.resolve()
      await hold.promise
      return { content: [{ type: 'text', text: 'kept' }] }
    })
    const mcpHost = await startMcpHost({ tools: { slow } })
    const session = await begin(mcpHost.url)
    const own = texts(await session.open())
    const params = { notifications: { toolsListChanged: true } }
    const listening = asked(mcpHost.url, 'subscriptions/listen', params, { id: 'mine' })
    const call = session.request('tools/call', { name: 'slow', arguments: {} }, 9)
    await begun.promise
    const closing = mcpHost.host.close()
    expect((await own.next()).value).to.match(/^retry: \d+$/)
    expect((await own.next()).done).to.equal(true)
    const { text, events } = await listening
    expect(text).to.match(/\nretry: \d+\nevent: message\ndata: \{[^\n]*"id":"mine"[^\n]*\n\n$/)
    expect(events.at(-1)).to.have.nested.property('result.resultType', 'complete')
    hold.resolve()
    expect((await call).body.result).to.deep.include({ content: [{ type: 'text', text: 'kept' }] })
    await closing
  })
})
