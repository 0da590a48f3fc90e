import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { INITIALIZE, talk } from './support/stdio.ts'
import { makeWorkspace } from './support/svc.ts'

// an open connection would hold up the drain of a worker that is replaced
const CLOSE = { connection: 'close' }
const status = async (url: string, path: string) => (await fetch(`${url}${path}`, { headers: CLOSE })).status
const json = async (url: string) => (await (await fetch(url, { headers: CLOSE })).json()) as Record<string, unknown>
const call = async (url: string, tool: string, args: object) => {
  const headers = { ...CLOSE, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/tools/${tool}/call`, { method: 'POST', headers, body: JSON.stringify({ arguments: args }) })
  return (await answer.json()) as Record<string, unknown>
}

/** What `/mcp` lists, asked for without a session. */
async function listed(url: string): Promise<string[]> {
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      ...CLOSE,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/list',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }),
  })
  const { result } = (await answer.json()) as { result: { tools: { name: string }[] } }
  return result.tools.map(({ name }) => name)
}

describe('svc serve --mcp', () => {
  it('serves the API, the tools over plain HTTP and the protocol on one port, and no more tools than --tools says', async () => {
    await using workspace = await makeWorkspace()
    const { url, end } = await workspace.serve(['--mcp', '--tools', 'calculate,current_time'])
    expect(await json(`${url}/health`))
      .to.deep.include({ status: 'healthy', tools: 2 })
      .and.include.keys('checks', 'protocol_versions')
    expect(await status(url, '/api/v1/modes')).to.equal(200)
    expect((await json(`${url}/tools`)).count).to.equal(2)
    expect(await listed(url)).to.deep.equal(['calculate', 'current_time'])
    expect(await call(url, 'calculate', { expression: '6 * 7' })).to.deep.include({
      success: true,
      structured_content: { result: 42 },
    })
    const { paths } = (await json(`${url}/openapi.json`)) as { paths: object }
    expect(paths).to.include.keys('/tools', '/tools/{name}', '/tools/{name}/call', '/health', '/api/v1/tools')
    expect((await end()).code).to.equal(0)
  })

  it('serves only tools that the mode allows, on each worker as soon as a switch is answered', async () => {
    await using workspace = await makeWorkspace()
    const { url, end } = await workspace.serve(['--mcp', '--mode', 'plan', '--workers', '2'])
    const names = async () => ((await json(`${url}/tools`)).tools as { name: string }[]).map(({ name }) => name)
    expect(await names())
      .to.include('read_file')
      .and.not.include.members(['write_file'])
    expect(await call(url, 'write_file', { path: 'a', content: 'b' })).to.include({ error_code: 'INVALID_VALUE' })
    const headers = { ...CLOSE, 'content-type': 'application/json' }
    const switched = { method: 'POST', headers, body: JSON.stringify({ mode: 'build' }) }
    expect((await fetch(`${url}/api/v1/mode/switch`, switched)).status).to.equal(200)
    for (let at = 0; at < 6; at++) expect(await names()).to.include('write_file')
    expect((await end()).code).to.equal(0)
  })

  it('does not start with --tools alone, unless the configuration switches the tool server on', async () => {
    await using workspace = await makeWorkspace()
    const refused = await workspace.svc(['serve', '--port', '0', '--tools', 'calculate'])
    expect(refused.code).to.equal(1)
    expect(refused.err)
      .to.match(/^COMMAND_LINE_INVALID/m)
      .and.contain('Add --mcp')
    expect((await workspace.svc(['config', 'check', '--tools', 'calculate'])).code).to.equal(1)
    await workspace.write('svc.config.yaml', 'mcp: { server: { enabled: true } }\n')
    const { url, end } = await workspace.serve(['--tools', 'calculate'])
    expect(await listed(url)).to.deep.equal(['calculate'])
    expect((await end()).code).to.equal(0)
  })

  it('does not start with a tool that there is not, and says what is near', async () => {
    await using workspace = await makeWorkspace()
    const { code, err } = await workspace.svc(['serve', '--port', '0', '--mcp', '--tools', 'read_file,curent_time'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^MCP_TOOL_UNKNOWN/m)
      .and.contain('did you mean "current_time"?')
      .and.not.contain('"read_file"')
  })
})

describe('svc mcp serve', () => {
  const it = sideBySide()

  it('takes a mode, which decides which tools there are', async () => {
    await using workspace = await makeWorkspace()
    const { url, end } = await workspace.serve(['--mode', 'plan'], { command: ['mcp', 'serve'] })
    expect(await listed(url))
      .to.include('read_file')
      .and.not.include('write_file')
    expect((await end()).code).to.equal(0)
    const { code, err } = await workspace.svc(['mcp', 'serve', '--port', '0', '--mode', 'plann'])
    expect(code).to.equal(1)
    expect(err).to.contain('there is no mode "plann"')
  })

  it('serves tools alone, where mcp.server says, with a reload and a drain as svc serve has them', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write(
      'svc.config.yaml',
      'mcp: { server: { host: localhost, port: 0, tools: [calculate] } }\nserver: { port: 1 }\n'
    )
    const server = await workspace.serve([], { command: ['mcp', 'serve'] })
    const { url } = server
    expect(new URL(url).hostname).to.equal('localhost')
    expect(await json(`${url}/health`)).to.have.all.keys('status', 'version', 'uptime_seconds', 'tools', 'protocol_versions')
    expect(await listed(url)).to.deep.equal(['calculate'])
    for (const path of ['/api/v1/modes', '/api/v1/chat', '/openapi.json', '/docs'])
      expect(await status(url, path), path).to.equal(404)
    expect(await status(url, '/metrics')).to.equal(200)
    const other = await workspace.svc(['tools', 'list'])
    expect([other.code, other.err], 'a server without an API is not asked for it').to.deep.equal([0, ''])
    expect(other.out).to.contain('read_file')
    await workspace.write('svc.config.yaml', 'mcp: { server: { host: localhost, port: 0, tools: [calculate, hash_text] } }\n')
    const { code, err } = await workspace.svc(['reload'])
    expect([code, err]).to.deep.equal([0, ''])
    expect(await listed(url)).to.deep.equal(['calculate', 'hash_text'])
    expect((await server.end('SIGTERM')).code).to.equal(0)
  })

  it('serves the client at its standard input and output, which only the protocol uses, and ends with the input', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write(
      'loud.ts',
      "console.log('loud at import')\nexport default { requires: {}, optional: {}, setup() { process.stdout.write('loud\\n') } }\n"
    )
    await workspace.write('svc.config.yaml', 'plugins: [./loud.ts]\n')
    const client = talk(workspace, ['mcp', 'serve', '--stdio', '--debug', '--tools', 'calculate'])
    client.send(INITIALIZE)
    expect((await client.answer(1)).result).to.deep.include({ protocolVersion: '2025-11-25' })
    client.send({ method: 'notifications/initialized' })
    client.send({ id: 2, method: 'tools/list' })
    client.send({ id: 3, method: 'tools/call', params: { name: 'calculate', arguments: { expression: '6 * 7' } } })
    const { result } = await client.answer(2)
    expect((result!.tools as { name: string }[]).map(({ name }) => name)).to.deep.equal(['calculate'])
    expect((await client.answer(3)).result).to.deep.include({ structuredContent: { result: 42 } })
    const { code, err } = await client.end('input')
    expect(code).to.equal(0)
    expect(err).to.contain('loud at import').and.contain('loud\n').and.contain('"level":20')
    expect(client.lines.map(line => (JSON.parse(line) as { jsonrpc: string }).jsonrpc)).to.deep.equal(['2.0', '2.0', '2.0'])
  })

  it('exits with 0 at SIGTERM while a client is connected', async () => {
    await using workspace = await makeWorkspace()
    const client = talk(workspace, ['mcp', 'serve', '--stdio'])
    client.send(INITIALIZE)
    await client.answer(1)
    expect((await client.end('SIGTERM')).code).to.equal(0)
  })

  it('says on the standard error stream why it cannot start, and ends with 1', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('other.yaml', 'mcp: { server: { tools: [calcualte] } }\n')
    const { code, out, err } = await workspace.svc(['mcp', 'serve', '--stdio', '-c', 'other.yaml'])
    expect([code, out]).to.deep.equal([1, ''])
    expect(err)
      .to.match(/^MCP_TOOL_UNKNOWN/m)
      .and.contain('did you mean "calculate"?')
  })

  it('stands beside the commands of plugins, which may have others of its topic and not its own name', async () => {
    await using workspace = await makeWorkspace()
    const { out } = await workspace.svc(['mcp', '--help'])
    expect(out)
      .to.match(/^ *mcp serve /m)
      .and.match(/^ *mcp list /m)
    const svc = { api: 1, kind: 'tool', contributes: { commands: ['mcp serve', 'mcp mine'] } }
    const exports = { '.': './index.js', './commands': './mine.ts' }
    await workspace.write('mine/package.json', JSON.stringify({ name: 'mine', version: '1.0.0', type: 'module', exports, svc }))
    await workspace.write('mine/index.js', 'export default { requires: {}, optional: {}, setup() {} }')
    await workspace.write('mine/mine.ts', 'export const COMMANDS = {}')
    await workspace.write('svc.config.yaml', 'plugins: [./mine]\n')
    const { code, err } = await workspace.svc(['config', 'check'])
    expect(code).to.equal(1)
    expect(err).to.contain('"mcp serve"').and.not.contain('"mcp mine"')
  })

  it('ends with 2 for --stdio with what belongs to a port', async () => {
    await using workspace = await makeWorkspace()
    const { code, err } = await workspace.svc(['mcp', 'serve', '--stdio', '--port', '1'])
    expect(code).to.equal(2)
    expect(err).to.contain('--stdio')
  })
})
