import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ConfigTree } from '@svc/core'
import { AuthSchemes, HealthFacts, Mounts, Pipes, Routes } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { echo, startMcpHost, type McpHost } from './support/host.ts'
import { asked, begin } from './support/wire.ts'

const tools = { current_time: echo, read_file: echo, write_file: echo, github__search: echo, github__list: echo, local__x: echo }

/** The problems of a start that fails. */
async function problemsOf(mcp: ConfigTree): Promise<{ code: string; message: string; where?: string }[]> {
  const started: McpHost | { problems?: [] } = await startMcpHost({ tools, mcp }).catch((error: { problems?: [] }) => error)
  if ('host' in started) await started.host.close()
  return 'host' in started ? [] : (started.problems ?? [])
}

const namesIn = async (mcpHost: McpHost) =>
  ((await mcpHost.ask.get('/tools')).body.tools as unknown as { name: string }[]).map(({ name }) => name)

describe('what is published', () => {
  for (const [what, mcp, names] of [
    ['all tools where nothing is said', {}, Object.keys(tools).sort()],
    ['those that are named', { tools: ['read_file', 'current_time'] }, ['current_time', 'read_file']],
    ['those that a pattern fits', { tools: ['github__*', 'current_time'] }, ['current_time', 'github__list', 'github__search']],
    ['none where the list is empty', { tools: [] }, []],
    [
      'what a server may bring later is taken as it is written',
      { tools: ['gitlab__issues', 'gone__*', 'read_file'] },
      ['read_file'],
    ],
  ] as const)
    it(`is ${what}`, async () => {
      await using mcpHost = await startMcpHost({ tools, mcp })
      expect(await namesIn(mcpHost)).to.deep.equal(names)
      expect((await mcpHost.ask.get('/health')).body.tools).to.equal(names.length)
      for (const hidden of Object.keys(tools).filter(name => !(names as readonly string[]).includes(name))) {
        expect((await mcpHost.ask.get(`/tools/${hidden}`)).status, hidden).to.equal(404)
        expect((await mcpHost.ask.post(`/tools/${hidden}/call`, { arguments: { text: 'x' } })).status, hidden).to.equal(404)
      }
    })

  it('is nothing that only turns of some modes have', async () => {
    await using mcpHost = await startMcpHost({ tools: { ...tools, delegate: { ...echo, modes: ['delegate'] } }, mcp: {} })
    expect(await namesIn(mcpHost)).to.deep.equal(Object.keys(tools).sort())
    expect((await mcpHost.ask.post('/tools/delegate/call', { arguments: { text: 'x' } })).status).to.equal(404)
  })

  it('fails the start where a name is none, and says what is near', async () => {
    const [problem, ...others] = await problemsOf({ tools: ['curent_time', 'zzz', 'read_file'], sets: { time: ['current_tme'] } })
    expect(others).to.deep.equal([])
    expect(problem).to.deep.include({ code: 'MCP_TOOL_UNKNOWN' })
    expect(problem?.message.split('\n')).to.deep.equal([
      'mcp.server.tools names the tool "curent_time", which does not exist: did you mean "current_time"?',
      'mcp.server.tools names the tool "zzz", which does not exist',
      'mcp.server.sets.time names the tool "current_tme", which does not exist: did you mean "current_time"?',
    ])
  })

  it('fails the start where a set names what mcp.server.tools leaves out', async () => {
    const [problem] = await problemsOf({ tools: ['read_file'], sets: { files: ['read_file', 'write_file'] } })
    expect(problem?.message).to.equal('mcp.server.sets.files names the tool "write_file", but mcp.server.tools excludes it')
    expect(await problemsOf({ tools: ['read_file', 'write_*'], sets: { files: ['write_file', '*'] } })).to.deep.equal([])
  })

  for (const [what, mcp] of [
    ['a set with a name that is no word of a path', { sets: { 'a/b': [] } }],
    ['a set that is no list', { sets: { a: 'read_file' } }],
    ['a tool that is no text', { tools: [1] }],
    ['a name with a blank in it', { tools: ['read file'] }],
    ['a key that nobody knows', { tolls: [] }],
  ] as const)
    it(`fails the start for ${what}`, async () => {
      const codes = (await problemsOf(mcp)).map(({ code }) => code)
      expect(codes[0]).to.match(/^CONFIG_/)
    })
})

describe('a set of tools', () => {
  const mcp = {
    tools: ['read_file', 'current_time', 'github__*'],
    sets: { hub: ['github__*', 'local__*'], all: ['*'], none: [] },
  }
  const names = (result: unknown) => ((result as { tools?: { name: string }[] } | undefined)?.tools ?? []).map(({ name }) => name)

  for (const [path, published] of [
    ['/mcp', ['current_time', 'github__list', 'github__search', 'read_file']],
    ['/mcp/hub', ['github__list', 'github__search']],
    ['/mcp/all', ['current_time', 'github__list', 'github__search', 'read_file']],
    ['/mcp/none', []],
  ] as const)
    it(`is what its path has, in both eras, and never more than is published: ${path}`, async () => {
      await using mcpHost = await startMcpHost({ tools, mcp })
      expect(names((await asked(mcpHost.url, 'tools/list', {}, { path })).body.result)).to.deep.equal(published)
      const session = await begin(mcpHost.url, { path })
      expect(names((await session.request('tools/list')).body.result)).to.deep.equal(published)
      for (const name of Object.keys(tools)) {
        const { body } = await asked(mcpHost.url, 'tools/call', { name, arguments: { text: 'x' } }, { path })
        const isThere = (published as readonly string[]).includes(name)
        expect(isThere ? body.result?.structuredContent : body.error?.code, name).to.deep.equal(isThere ? { text: 'x' } : -32602)
      }
      await session.end()
    })

  it('that there is not is nothing', async () => {
    await using mcpHost = await startMcpHost({ tools, mcp })
    for (const path of ['/mcp/other', '/mcp/hub/x', '/mcpx']) {
      const { status, body } = await asked(mcpHost.url, 'tools/list', {}, { path })
      expect([status, body.result], path).to.deep.equal([404, undefined])
    }
  })
})

describe('a tool server that is not switched on', () => {
  it('adds nothing that serves', async () => {
    await using host = await testHost([new URL('..', import.meta.url)])
    const sizes = [Routes, AuthSchemes, HealthFacts, Pipes].map(slot => host.slot<unknown>(slot).size)
    expect(sizes).to.deep.equal([0, 0, 0, 0])
    for (const [, mount] of host.slot(Mounts).entries()) expect(mount).to.have.all.keys('path', 'scope', 'off')
  })

  it('says in the 404 of its paths how to switch it on', async () => {
    await using mcpHost = await startMcpHost({ mcp: { enabled: false } })
    const hint = 'the tool server is off; run `svc serve --mcp`, or set `mcp.server.enabled: true`'
    for (const path of ['/tools', '/tools/echo', '/tools/echo/call', '/mcp', '/mcp/set']) {
      const { status, body } = await mcpHost.ask.post(path, {})
      expect([status, body.error_code, body.error]).to.deep.equal([404, 'NOT_FOUND', `there is no route POST ${path}: ${hint}`])
    }
    expect((await mcpHost.ask.get('/toolshed')).body.error).to.equal('there is no route GET /toolshed')
  })
})

describe('the SDK of the protocol', () => {
  it('is imported neither while the tool server is off, nor before its first client', async () => {
    const script = fileURLToPath(new URL('./support/note-imports.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=svc-source', script])
    const [off, on] = JSON.parse(stdout) as [string[], string[]]
    const heavy = (names: readonly string[]) => names.filter(name => /^(@modelcontextprotocol\/|zod)/.test(name))
    expect([heavy(off), heavy(on)]).to.deep.equal([[], []])
    expect(off).to.not.include('@svc/mcp-protocol')
    expect(on).to.include('@svc/mcp-protocol')
  })
})

describe('GET /health of a server that serves tools alone', () => {
  it('reports status, version, uptime, tools and protocol versions without authentication', async () => {
    await using mcpHost = await startMcpHost({ tools, mcp: { tools: ['github__*'] }, server: { auth: { enabled: false } } })
    const { status, body } = await mcpHost.ask.get('/health')
    expect([status, body]).to.deep.equal([
      200,
      {
        status: 'healthy',
        version: '1.2.3',
        uptime_seconds: 0,
        tools: 2,
        protocol_versions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'],
      },
    ])
  })
})
