import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { McpClients } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { type HostSetup, startMcpHost, refusal } from './support/host.ts'
import { begin } from './support/wire.ts'

const FICKLE = fileURLToPath(new URL('../../../../test/support/hostile-server.mjs', import.meta.url))

/** A host with the real plugins and a server that changes one of its tools once that was called. */
async function fickleHouse(more: HostSetup = {}) {
  const before = process.env.SVC_HOME
  const home = await mkdtemp(join(tmpdir(), 'svc-mcp-'))
  process.env.SVC_HOME = home
  const clients = [{ name: 'one', command: process.execPath, args: [FICKLE, JSON.stringify({ fickle: true })] }]
  const mcpHost = await startMcpHost({ plugins: ['store-memory', 'mcp-client', 'mcp-bridge'], clients, ...more })
  const status = async (path: string) => (await mcpHost.ask.get(path)).status
  const until = async (isThere: () => Promise<boolean>) => {
    while (!(await isThere())) await wait(20)
  }
  return {
    ...mcpHost,
    /** Calls the tool, which makes it another, and answers once that is known. */
    async change() {
      const service = mcpHost.host.service(McpClients)
      await until(async () => (await service.list(testContext()))[0]!.tools.includes('echo'))
      await Array.fromAsync(service.call('one', 'echo', { text: 'first' }, {}, testContext()))
      await until(async () => (await service.list(testContext()))[0]!.state === 'degraded')
      await until(async () => (await status('/tools/one__echo')) === 404)
    },
    async [Symbol.asyncDispose]() {
      await mcpHost.host.close()
      if (before === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = before
      await rm(home, { recursive: true, force: true })
    },
  }
}

const WORDS = 'the tool "one__echo" has changed and is disabled until it is approved: svc mcp approve one'

describe('a tool that waits for approval', () => {
  it('is rejected with the command that approves it, for callers that can see it, over plain HTTP and the protocol', async () => {
    await using host = await fickleHouse()
    await host.change()
    const answers = [await host.ask.get('/tools/one__echo'), await host.ask.post('/tools/one__echo/call', { arguments: {} })]
    for (const answer of answers) {
      expect(refusal(answer)).to.deep.equal([404, 'TOOL_NOT_FOUND', { tool: 'one__echo', server: 'one', reason: 'changed' }])
      expect(answer.body.error).to.include(WORDS)
    }
    const session = await begin(host.url)
    const { error } = (await session.request('tools/call', { name: 'one__echo', arguments: {} })).body
    expect(error).to.deep.include({ code: -32_602, message: `Unknown tool: one__echo: ${WORDS}` })
    await session.end()
    expect((await host.ask.get('/tools/one__ekko')).body.error).to.include('there is no tool "one__ekko"')
    await host.host.service(McpClients).setEnabled('one', false, testContext())
    expect((await host.ask.get('/tools/one__echo')).body.error).to.include('there is no tool "one__echo"')
  })

  it('is unknown to callers that cannot see it', async () => {
    await using host = await fickleHouse({ mcp: { tools: ['one__sleep'] } })
    await host.change()
    const { body } = await host.ask.post('/tools/one__echo/call', { arguments: {} })
    expect(body.error).to.include('there is no tool "one__echo"')
  })
})
