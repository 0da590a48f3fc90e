import { access, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { z } from 'zod'
import { hostileCommand, type HostileServer, openHostile } from './support/hostile.ts'
import { newHome, post, type Service, startService } from './support/service.ts'

const everything = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')

interface Listed {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly properties?: object }
}

const get = async (service: Service, path: string) => (await fetch(service.url + path)).json() as Promise<Record<string, unknown>>
const call = (service: Service, tool: string, args: object = {}) => post(`${service.url}/tools/${tool}/call`, { arguments: args })
const turn = () => new Promise(resolve => setTimeout(resolve, 20))

/** Waits until the service has a tool of this name, or has it no longer. */
async function listed(service: Service, name: string, isThere = true): Promise<Listed | undefined> {
  for (;;) {
    const { tools } = (await get(service, '/tools')) as { tools: Listed[] }
    const found = tools.find(tool => tool.name === name)
    if ((found !== undefined) === isThere) return found
    await turn()
  }
}

describe('bridged tool servers in a running service', () => {
  let service: Service
  let remote: HostileServer
  before(async function () {
    this.timeout(60_000)
    remote = await openHostile()
    const home = await newHome()
    const command = { command: process.execPath }
    const clients = [
      { name: 'everything', ...command, args: [everything] },
      { name: 'remote', url: remote.url, timeout: 5 },
      { name: 'absent', command: '/no/such/program' },
      { name: 'flood', ...hostileCommand({ tools: 100_000 }) },
      { name: 'endless', ...hostileCommand({ cursors: 'endless' }) },
      { name: 'mute', ...hostileCommand({ silent: ['initialize'] }) },
      { name: 'shy', ...hostileCommand(), deny: ['die', 'big'], effects: ['read'] },
    ]
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ mcp: { server: { enabled: true }, clients } }))
    service = await startService({ home, cwd: home })
    for (const name of ['everything__echo', 'remote__echo', 'shy__echo', 'flood__echo']) await listed(service, name)
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await remote?.[Symbol.asyncDispose]()
    await rm(service?.home, { recursive: true, force: true })
  })

  it('are tools like all others: over REST, to models and in the list', async () => {
    const answer = await call(service, 'everything__echo', { message: 'hi' })
    expect(answer.body).to.deep.include({ success: true, content: [{ type: 'text', text: 'Echo: hi' }], is_error: false })
    const chat = await post(`${service.url}/api/v1/chat`, { message: '/tool everything__get-sum {"a":2,"b":3}' })
    expect(chat.body['response']).to.include('5')
    expect((chat.body['tools_used'] as object[])[0]).to.include({ tool: 'everything__get-sum', success: true })
    const { tools } = (await get(service, '/api/v1/tools')) as { tools: { name: string; category: string }[] }
    expect(tools.find(({ name }) => name === 'everything__echo')?.category).to.equal('mcp')
  })

  it('get the trace of a request, in a header and in the message, and no other header of it', async () => {
    const traced = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'vendor=1' }
    const headers = { 'content-type': 'application/json', baggage: 'user=anna', 'x-private': 'secret', ...traced }
    const resultOf = async (tool: string) => {
      const response = await fetch(`${service.url}/tools/${tool}/call`, { method: 'POST', headers, body: '{"arguments":{}}' })
      const { content } = (await response.json()) as { content: { text: string }[] }
      return JSON.parse(content[0]!.text) as Record<string, Record<string, string>>
    }
    expect(await resultOf('remote__headers'))
      .to.include(traced)
      .and.not.have.any.keys('baggage', 'x-private')
    for (const tool of ['remote__pid', 'shy__pid']) {
      const { meta } = await resultOf(tool)
      expect(meta).to.include(traced).and.not.have.any.keys('baggage', 'x-private')
    }
  })

  it('keep what their results hold: data, images, links', async () => {
    const { body } = await call(service, 'everything__get-structured-content', { location: 'Chicago' })
    expect(body['structured_content']).to.have.keys('temperature', 'conditions', 'humidity')
    const image = await call(service, 'everything__get-tiny-image')
    expect((image.body['content'] as { type: string }[]).map(({ type }) => type)).to.include('image')
    const links = await call(service, 'everything__get-resource-links', { count: 2 })
    expect((links.body['content'] as { type: string }[]).filter(({ type }) => type === 'resource_link')).to.have.length(2)
  })

  it('pass results to MCP clients unchanged, including unknown content types and metadata', async () => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`)))
    const { content, structuredContent, _meta } = await client.request(
      { method: 'tools/call', params: { name: 'shy__odd', arguments: {} } },
      z.looseObject({ content: z.unknown(), structuredContent: z.unknown(), _meta: z.unknown() })
    )
    await client.close()
    expect({ content, structuredContent, _meta }).to.deep.equal({
      content: [{ type: 'hologram', data: { a: [1] } }],
      structuredContent: { b: 2 },
      _meta: { c: 3 },
    })
  })

  it('have no tools that the configuration denies, and the effects that it says', async () => {
    for (const name of ['shy__die', 'shy__big']) expect((await call(service, name)).body['error_code']).to.equal('TOOL_NOT_FOUND')
    await post(`${service.url}/api/v1/mode/switch`, { mode: 'plan' })
    const chat = (tool: string) => post(`${service.url}/api/v1/chat`, { message: `/tool ${tool} {"text":"x"}`, tools: [tool] })
    const [refused, allowed] = [await chat('remote__echo'), await chat('shy__echo')]
    await post(`${service.url}/api/v1/mode/switch`, { mode: 'build' })
    expect([refused.status, refused.body['error_code']]).to.deep.equal([400, 'INVALID_VALUE'])
    expect(allowed.status).to.equal(200)
  })

  it('that are absent, mute, flooding or endless take no tools away from others, and are reported by name', async () => {
    const { tools } = (await get(service, '/tools')) as { tools: Listed[] }
    expect(tools.filter(({ name }) => name.startsWith('flood__'))).to.have.length(1000)
    expect(tools.filter(({ name }) => /^(absent|mute)__/.test(name))).to.deep.equal([])
    expect((await call(service, 'everything__echo', { message: 'still here' })).status).to.equal(200)
    const metrics = await (await fetch(`${service.url}/metrics`)).text()
    expect(metrics).to.match(/svc_mcp_tool_calls_total\{[^}]*tool="everything__echo"[^}]*outcome="completed"[^}]*\} [1-9]/)
    for (const name of ['absent', 'flood']) expect(metrics).to.match(new RegExp(`server="${name}"`))
  })

  it('receive no credentials of their callers', async () => {
    const secrets = { authorization: 'Bearer inbound-1', 'x-api-key': 'inbound-2', cookie: 'session=inbound-3' }
    const answer = await post(`${service.url}/tools/remote__headers/call`, {}, secrets)
    const [{ text }] = answer.body['content'] as [{ text: string }]
    expect(JSON.parse(text)).to.include.keys('host', 'mcp-session-id')
    expect(text).to.not.include('inbound-')
  })

  it('cannot be added or started through any route', async () => {
    const canary = join(service.home, 'canary')
    const script = `require('node:fs').writeFileSync(${JSON.stringify(canary)}, '')`
    const server = { name: 'planted', command: process.execPath, args: ['-e', script] }
    const clients = [server]
    const many = {
      server,
      servers: clients,
      clients,
      mcpServers: { planted: server },
      mcp: { clients },
      config: { mcp: { clients } },
    }
    const body = { ...server, ...many, arguments: server, input: server, params: server, message: JSON.stringify(many) }
    const { paths } = (await get(service, '/openapi.json')) as { paths: Record<string, object> }
    const routes = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map(method => [method.toUpperCase(), path] as const)
    )
    const writing = [...routes.filter(([method]) => method !== 'GET'), ['POST', '/mcp'] as const]
    expect(writing.map(route => route.join(' '))).to.include.members(['POST /tools/{name}/call', 'POST /api/v1/chat'])
    for (const [method, path] of writing) {
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
      const sent = path === '/mcp' ? { jsonrpc: '2.0', id: 1, method: 'initialize', ...body } : body
      const url = service.url + path.replace(/\{\w+\}/, 'planted')
      await (await fetch(url, { method, headers, body: JSON.stringify(sent) })).text()
    }
    expect(
      await access(canary).then(
        () => 'started',
        () => 'not there'
      )
    ).to.equal('not there')
    const metrics = await (await fetch(`${service.url}/metrics`)).text()
    expect(metrics)
      .to.include('svc_mcp_client_state{')
      .and.not.match(/svc_mcp_client_state\{[^}]*planted/)
  })

  it('return an error that names a stopped server, and work again after its restart', async () => {
    const port = Number(new URL(remote.url).port)
    await remote[Symbol.asyncDispose]()
    const down = await call(service, 'remote__echo', { text: 'anybody?' })
    expect([down.status, down.body['error_code']]).to.deep.equal([503, 'PROVIDER_ERROR'])
    expect(down.body['details']).to.deep.include({ server: 'remote' })
    expect((await call(service, 'shy__echo', { text: 'me' })).status).to.equal(200)
    remote = await openHostile({ port })
    for (;;) {
      const { status } = await call(service, 'remote__echo', { text: 'back' })
      if (status === 200) break
      await turn()
    }
  })

  it('lose only the running call when they crash', async () => {
    const died = await call(service, 'flood__die')
    expect(died.status).to.be.oneOf([500, 503])
    expect((await call(service, 'everything__echo', { message: 'alive' })).status).to.equal(200)
    for (;;) {
      const { status } = await call(service, 'flood__echo', { text: 'again' })
      if (status === 200) break
      await turn()
    }
  })

  it('leave neither arguments nor results in the log', async () => {
    await call(service, 'shy__echo', { text: 'a-secret-argument' })
    expect(service.output()).to.include('"tool":"shy__echo"').and.not.include('a-secret-argument')
  })
})
