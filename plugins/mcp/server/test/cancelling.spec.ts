import { request } from 'node:http'
import type { Tool } from '@svc/core/contracts'
import { expect } from 'chai'
import { startMcpHost, toolOf } from './support/host.ts'
import { ask, begin } from './support/wire.ts'

/** A tool that runs until it is aborted, in either form. */
function endless(more: (call: Tool['call']) => Partial<Tool> = () => ({})) {
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<string>()
  const call: Tool['call'] = async (_args, { signal }) => {
    begun.resolve()
    await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
    ended.resolve('aborted')
    throw signal.reason
  }
  return { tool: toolOf(call, more(call)), begun: begun.promise, ended: ended.promise }
}

const stepByStep = (call: Tool['call']): Partial<Tool> => ({
  async *run(args, _dialog, ctx) {
    yield { type: 'result', result: await call(args, ctx) }
  },
})

const CALL = { name: 'endless', arguments: {} }
const FOLLOWED = { ...CALL, _meta: { progressToken: 1 } }

describe('a call that is no longer wanted', () => {
  for (const [form, more, meta] of [
    ['a tool', undefined, {}],
    ['a tool that tells its steps', stepByStep, { progressToken: 1 }],
  ] as const) {
    it(`ends ${form} when its stateless client leaves`, async () => {
      const { tool, begun, ended } = endless(more)
      await using mcpHost = await startMcpHost({ tools: { endless: tool } })
      const leaving = new AbortController()
      const answer = ask(mcpHost.url, 'tools/call', CALL, { meta, signal: leaving.signal }).catch((error: Error) => error.name)
      await begun
      leaving.abort()
      expect(await ended).to.equal('aborted')
      expect(await answer).to.equal('AbortError')
    })

    it(`ends ${form} when its session cancels it, and its line with it`, async () => {
      const { tool, begun, ended } = endless(more)
      await using mcpHost = await startMcpHost({ tools: { endless: tool } })
      const session = await begin(mcpHost.url)
      const answer = session.request('tools/call', more ? FOLLOWED : CALL, 7)
      await begun
      const reported = await session.send({ method: 'notifications/cancelled', params: { requestId: 7, reason: 'enough' } })
      expect(reported.status).to.equal(202)
      expect(await ended).to.equal('aborted')
      expect((await answer).body).to.deep.equal({})
    })

    it(`ends ${form} when its session ends`, async () => {
      const { tool, begun, ended } = endless(more)
      await using mcpHost = await startMcpHost({ tools: { endless: tool } })
      const session = await begin(mcpHost.url)
      const answer = session.request('tools/call', more ? FOLLOWED : CALL, 7)
      await begun
      expect((await session.end()).status).to.equal(200)
      expect(await ended).to.equal('aborted')
      await answer
    })
  }

  it('is the one that was named, whatever names the calls have', async () => {
    const go = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const slow = toolOf(async (_args, { signal }) => {
      begun.resolve()
      await go.promise
      signal.throwIfAborted()
      return { content: [] }
    })
    await using mcpHost = await startMcpHost({ tools: { slow } })
    const session = await begin(mcpHost.url)
    const answer = session.send({ id: '', method: 'tools/call', params: { name: 'slow', arguments: {} } })
    await begun.promise
    for (const params of [{ requestId: 7 }, {}, { requestId: null }])
      await session.send({ method: 'notifications/cancelled', params })
    await session.request('ping', {}, 2)
    go.resolve()
    expect((await (await answer).json()) as object).to.deep.equal({ jsonrpc: '2.0', id: '', result: { content: [] } })
  })

  it('runs on when the client of a session only leaves the line: the protocol says so', async () => {
    const begun = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<boolean>()
    const slow = toolOf(async (_args, { signal }) => {
      begun.resolve()
      await go.promise
      ended.resolve(signal.aborted)
      return { content: [] }
    })
    await using mcpHost = await startMcpHost({ tools: { slow } })
    const session = await begin(mcpHost.url)
    const params = { name: 'slow', arguments: {} }
    const line = request(`${mcpHost.url}/mcp`, { method: 'POST', agent: false, headers: session.headers })
    line.on('error', () => {}).end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
    await begun.promise
    line.destroy()
    await new Promise(resolve => line.once('close', resolve))
    expect((await session.request('ping', {}, 2)).body.result).to.deep.equal({})
    go.resolve()
    expect(await ended.promise).to.equal(false)
  })
})
