import { rm } from 'node:fs/promises'
import { systemContext } from '@svc/core'
import { findServers } from '@svc/runtime'
import { expect } from 'chai'
import { type Client, createClient } from './support/client.ts'
import { newHome, startService } from './support/service.ts'
import { until } from './support/wait.ts'

const effective = async (client: Client) => (await client.get('/api/v1/config/effective')).body as { readonly mode: string }

describe('two servers that share a home', () => {
  let home = ''
  beforeEach(async () => {
    home = await newHome()
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('have a state each, a control socket each, and the same conversations', async () => {
    await using service = await startService({ home })
    await using two = await startService({ home, args: ['--mode', 'review'] })
    const [first, second] = [service, two].map(({ url }) => createClient(url, { keepAlive: false })) as [Client, Client]
    await first.post('/api/v1/mode/switch', { mode: 'plan' })
    await first.post('/api/v1/model/switch', { provider: 'local', model: 'local-small' })
    expect(await effective(first)).to.deep.include({ mode: 'plan', override: { provider: 'local', model: 'local-small' } })
    expect(await effective(second)).to.deep.include({ mode: 'review', override: null, model: 'local-1' })
    expect((await second.post('/api/v1/chat', { message: 'a' })).body).to.include({ model: 'local-1' })

    const { conversation_id } = (await first.post('/api/v1/chat', { message: 'over there' })).body as { conversation_id: string }
    expect((await second.get(`/api/v1/conversations/${conversation_id}`)).body).to.include({ message_count: 2 })

    const found = await findServers(home)
    expect(found.map(server => server.info.url).toSorted()).to.deep.equal([service.url, two.url].toSorted())
    for (const server of found) server[Symbol.dispose]()
  })

  it('have one state when their configuration names the same cluster', async () => {
    const env = { SVC_CLUSTER__NAME: 'shop' }
    await using service = await startService({ home, env })
    await using two = await startService({ home, env })
    const [first, second] = [service, two].map(({ url }) => createClient(url, { keepAlive: false })) as [Client, Client]
    await first.post('/api/v1/mode/switch', { mode: 'plan' })
    await until(
      () => effective(second),
      ({ mode }) => mode === 'plan'
    )
    await second.post('/api/v1/mode/switch', { mode: 'review' })
    await until(
      () => effective(first),
      ({ mode }) => mode === 'review'
    )
    for (const client of [first, second]) expect((await client.get('/health/ready')).body).to.deep.equal({ status: 'ready' })
    const found = await findServers(home)
    const reports = await Promise.all(found.map(({ control }) => control.report(systemContext(AbortSignal.timeout(5_000)))))
    expect(reports.map(({ clusterId }) => clusterId)).to.deep.equal(['shop', 'shop'])
    expect(new Set(reports.map(({ nodeId }) => nodeId)).size).to.equal(1)
    expect(new Set(reports.map(({ worker }) => worker)).size).to.equal(2)
    for (const { worker, serverId, nodeId } of reports)
      expect([worker.startsWith(`${serverId}.`), serverId.startsWith(`${nodeId}.`)]).to.deep.equal([true, true])
    for (const server of found) server[Symbol.dispose]()
  })

  it('serve the MCP sessions of each other in one cluster, and say so when the server of a session is gone', async () => {
    const env = { SVC_CLUSTER__NAME: 'shop' }
    await using service = await startService({ home, env, args: ['--mcp'] })
    await using two = await startService({ home, env, args: ['--mcp'] })
    const [first, second] = [service, two].map(({ url }) => createClient(url, { keepAlive: false })) as [Client, Client]
    const accept = { accept: 'application/json, text/event-stream' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } }
    const message = (id: number, method: string, more = {}) => ({ jsonrpc: '2.0', id, method, ...more })
    const begun = await first.send({ method: 'POST', path: '/mcp', headers: accept, body: message(0, 'initialize', { params }) })
    const own = { ...accept, 'mcp-session-id': begun.headers['mcp-session-id'] as string, 'mcp-protocol-version': '2025-11-25' }
    const list = (client: Client) => client.send({ method: 'POST', path: '/mcp', headers: own, body: message(1, 'tools/list') })
    for (const client of [second, first, second]) expect((await list(client)).status).to.equal(200)
    await service.kill()
    await until(
      () => list(second),
      ({ status }) => status === 404
    )
  })
})
