// Not a unit test: it serves HTTP.
import { systemContext } from '@svc/core'
import { Selection, type Tool } from '@svc/core/contracts'
import { expect } from 'chai'
import { type McpHost, refusal, startMcpHost, toolOf } from './support/host.ts'
import { asked, begin, messages } from './support/wire.ts'

const ctx = systemContext(new AbortController().signal)
const calls: string[] = []
const having = (name: string, effects: Tool['effects']) =>
  toolOf(
    async () => {
      calls.push(name)
      return { content: [] }
    },
    { effects }
  )
const tools = {
  look: having('look', ['read', 'network']),
  change: having('change', ['read', 'write']),
  run: having('run', ['execute']),
  own: having('own', []),
}

const start = (mode?: string) =>
  startMcpHost({
    tools,
    plugins: ['modes', 'selection', 'store-memory', 'provider-local'],
    mcp: { sets: { all: ['*'] } },
    config: { providers: { local: {} }, ...(mode === undefined ? {} : { selection: { mode } }) },
  })
const switchTo = (mcpHost: McpHost, mode: string) => mcpHost.host.service(Selection).switchMode(mode, ctx)
const listed = async (mcpHost: McpHost) =>
  ((await mcpHost.ask.get('/tools')).body.tools as unknown as { name: string }[]).map(({ name }) => name)

describe('the mode of the server', () => {
  beforeEach(() => void calls.splice(0))

  it('decides which tools are listed and called over plain HTTP', async () => {
    await using found = await start('plan')
    expect(await listed(found)).to.deep.equal(['look', 'own'])
    for (const name of ['change', 'run']) {
      const details = { field: 'name', value: name, reason: 'not allowed in mode plan' }
      expect(refusal(await found.ask.post(`/tools/${name}/call`, {}))).to.deep.equal([400, 'INVALID_VALUE', details])
      expect(refusal(await found.ask.get(`/tools/${name}`))).to.deep.equal([400, 'INVALID_VALUE', details])
    }
    expect((await found.ask.post('/tools/look/call', {})).status).to.equal(200)
    expect(calls).to.deep.equal(['look'])
    expect((await found.ask.get('/tools/unheard')).body.error_code).to.equal('TOOL_NOT_FOUND')
  })

  it('holds for sets of tools, and does not reveal what is not published', async () => {
    await using one = await start('review')
    const { body } = await asked(one.url, 'tools/list', {}, { path: '/mcp/all' })
    expect((body.result as { tools: { name: string }[] }).tools.map(({ name }) => name)).to.deep.equal(['look', 'own'])
    const called = await asked(one.url, 'tools/call', { name: 'change', arguments: {} }, { path: '/mcp/all' })
    expect(called.body.error?.message).to.include('the mode "review" does not allow it')
    await using few = await startMcpHost({
      tools,
      mcp: { tools: ['look'] },
      plugins: ['modes', 'selection', 'store-memory', 'provider-local'],
      config: { providers: { local: {} }, selection: { mode: 'review' } },
    })
    expect((await few.ask.post('/tools/change/call', {})).body.error_code).to.equal('TOOL_NOT_FOUND')
    expect(calls).to.deep.equal([])
  })

  it('applies at once after a switch, in both directions', async () => {
    await using found = await start()
    expect(await listed(found)).to.deep.equal(['change', 'look', 'own', 'run'])
    await switchTo(found, 'review')
    expect(await listed(found)).to.deep.equal(['look', 'own'])
    expect((await found.ask.post('/tools/run/call', {})).status).to.equal(400)
    await switchTo(found, 'build')
    expect((await found.ask.post('/tools/run/call', {})).status).to.equal(200)
  })

  it('holds over the protocol, with and without a session, and clients learn of the change', async () => {
    await using found = await start()
    const session = await begin(found.url)
    const stream = messages(await session.open())
    await switchTo(found, 'explore')
    expect((await stream.next()).value).to.deep.include({ method: 'notifications/tools/list_changed' })
    const { result } = (await session.request('tools/list')).body
    expect((result as { tools: { name: string }[] }).tools.map(({ name }) => name)).to.deep.equal(['look', 'own'])
    const called = { name: 'run', arguments: {} }
    for (const { body } of [await session.request('tools/call', called), await asked(found.url, 'tools/call', called)])
      expect(body.error?.message).to.include('the mode "explore" does not allow it')
    expect(calls).to.deep.equal([])
    await session.end()
  })
})
