import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, InMemoryServerEventBus, McpServer } from '@modelcontextprotocol/server'
import type { ToolStep } from '@svc/core/contracts'
import { createMcpClient, type McpClient } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { changeOf, forever, remote, steps } from './support/client.ts'

const programOf = (name: string) =>
  join(dirname(createRequire(import.meta.url).resolve(`@modelcontextprotocol/${name}/package.json`)), 'dist/index.js')
const start = (name: string, args: string[] = [], env: Record<string, string> = {}) =>
  createMcpClient({
    name,
    command: process.execPath,
    args: [programOf(name), ...args],
    env,
    can: ['elicitation/create', 'roots/list'],
  })

describe('server-everything', () => {
  let client: McpClient
  before(() => {
    client = start('server-everything', ['stdio'])
  })
  after(() => client.close())

  it('is listed whole, without a fault', async () => {
    const { tools, problems } = await client.listTools()
    expect(problems).to.deep.equal([])
    expect(tools.map(tool => tool.name)).to.include.members([
      'echo',
      'get-sum',
      'get-tiny-image',
      'trigger-long-running-operation',
    ])
  })

  it('answers with text, images, links and data', async () => {
    expect((await client.callTool('get-sum', { a: 2, b: 3 })).content).to.deep.equal([
      { type: 'text', text: 'The sum of 2 and 3 is 5.' },
    ])
    expect((await client.callTool('get-tiny-image', {})).content.map(part => part.type)).to.include('image')
    expect((await client.callTool('get-resource-links', { count: 2 })).content.map(part => part.type)).to.include('resource_link')
    expect((await client.callTool('get-structured-content', { location: 'Chicago' })).structured).to.have.keys(
      'temperature',
      'conditions',
      'humidity'
    )
  })

  it('reports its progress', async () => {
    const all = await steps(client.call('trigger-long-running-operation', { duration: 0.2, steps: 2 }, {}, forever()))
    // it logs besides
    expect(all.map(step => step.type).filter(type => type !== 'log')).to.deep.equal(['progress', 'progress', 'result'])
  })

  it('asks a person, and goes on with the answer', async () => {
    const can = ['elicitation/create'] as const
    const asked = (await steps(client.call('trigger-elicitation-request', {}, { owner: 'anna', dialog: { can } }, forever()))).at(
      -1
    )
    const { requests, state } = asked as Extract<ToolStep, { type: 'input' }>
    const answers = Object.fromEntries(Object.keys(requests).map(key => [key, { action: 'accept', content: { name: 'Anna' } }]))
    const dialog = { can, answers, state: state! }
    const result = (await steps(client.call('trigger-elicitation-request', {}, { owner: 'anna', dialog }, forever()))).at(-1)
    expect(JSON.stringify(result)).to.include('Anna')
  })

  it('says in its own way that it has no such tool, which is tool_not_found all the same', async () => {
    expect((await client.callTool('no-such-tool', {})).error).to.deep.equal({
      class: 'tool_not_found',
      message: 'it has no tool "no-such-tool"',
    })
    expect((await client.callTool('get-sum', { a: 'x' })).error?.class).to.equal('tool_error')
  })
})

describe('server-memory', () => {
  it('remembers over a new connection', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-memory-'))
    await using client = start('server-memory', [], { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') })
    const entities = [{ name: 'svc', entityType: 'host', observations: ['loads plugins'] }]
    expect((await client.callTool('create_entities', { entities })).error).to.equal(null)
    await client.disconnect('for a test')
    expect((await client.callTool('read_graph', {})).structured).to.deep.equal({ entities, relations: [] })
    await client.close()
    await rm(folder, { recursive: true })
  })
})

describe("the official SDK's own server", () => {
  it('notifies a stateless client of changed tools, on a stream that the client opens', async () => {
    const bus = new InMemoryServerEventBus()
    const listening = Promise.withResolvers<void>()
    const subscribe: typeof bus.subscribe = listener => {
      listening.resolve()
      return bus.subscribe(listener)
    }
    const handler = createMcpHandler(
      () => {
        const server = new McpServer({ name: 'sdk', version: '2.0.0' })
        server.registerTool('greet', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: 'hello' }] }))
        return server
      },
      { bus: { publish: event => bus.publish(event), subscribe } }
    )
    const server = createServer(toNodeHandler(handler))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const client = remote(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    expect((await client.callTool('greet', {})).content).to.deep.equal([{ type: 'text', text: 'hello' }])
    await listening.promise
    const changed = changeOf(client, 'tools')
    handler.notify.toolsChanged()
    await changed
    await client.close()
    server.close()
    server.closeAllConnections()
  })
})
