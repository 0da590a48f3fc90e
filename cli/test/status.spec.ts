import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { makeCertificate, writeCertificate } from '@svc/testing'
import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { makeWorkspace, type Workspace } from './support/svc.ts'

interface Facts {
  ok: boolean
  url: string
  pid: number
  health: string
  workers: { pid: number; state: string; generation: number }[]
  requests: { total: number; active: number; refused: number; failed: number; p50_ms: number; p95_ms: number }
  routes: { route: string; requests: number; failed: number; p95_ms: number }[]
  providers: Record<string, { healthy: boolean; requests: number; calls: number; errors: number; input_tokens: number }>
  plugins: { name: string; state: string; calls?: number }[]
  checks: Record<string, string>
  store: string
  untold: { path: string; code: string }[]
  recent?: { seconds: number; requests: number; requests_per_second: number }
}

const factsOf = (text: string) => JSON.parse(text) as Facts

const chat = (url: string, message: string) =>
  fetch(`${url}/api/v1/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  })

describe('svc status of a server that runs', () => {
  let workspace: Workspace
  let server: Awaited<ReturnType<Workspace['serve']>>
  before(async () => {
    workspace = await makeWorkspace()
    server = await workspace.serve()
  })
  after(() => workspace[Symbol.asyncDispose]())

  it('prints the same as JSON with --json', async () => {
    for (const message of ['one', 'two', '/fail authentication']) await chat(server.url, message)
    const { code, out } = await workspace.svc(['status', '--json'])
    const facts = factsOf(out)
    expect([code, facts.ok, facts.url, facts.pid, facts.health]).to.deep.equal([
      0,
      true,
      server.url,
      server.process.pid,
      'healthy',
    ])
    expect(facts.workers.map(worker => worker.state)).to.deep.equal(['ready'])
    expect(facts.requests).to.include({ active: 0, refused: 0, failed: 1 })
    expect(facts.requests.p50_ms).to.be.above(0).and.at.most(facts.requests.p95_ms)
    expect(facts.routes.map(({ route, requests, failed }) => [route, requests, failed])).to.deep.equal([
      ['POST /api/v1/chat', 3, 1],
    ])
    expect(facts.providers.local).to.include({ healthy: true, calls: 3, errors: 1 })
    expect(facts.store).to.equal('@svc/plugin-store-sqlite')
    expect(facts.plugins.find(plugin => plugin.name === '@svc/plugin-metrics')?.calls).to.be.above(0)
    expect(facts.untold).to.deep.equal([])
  })

  it('asks a server of another home by its address, and does without its processes', async () => {
    await using other = await makeWorkspace()
    const { code, out } = await other.svc(['status', '--url', server.url])
    expect(code).to.equal(0)
    expect(out).to.contain(`at ${server.url} is healthy`).and.not.contain('WORKER')
  })

  it('shows what another server says of its cluster without control characters', async () => {
    const bad = '\u001b]0;owned\u0007\u001b[2Jx\nNODE_DIFFERS y'
    const worker = { name: bad, version: bad, state: null, requests_active: 0, busy: 0, memory_bytes: 0 }
    const differences = [{ what: 'plugin', name: bad, here: bad, there: null }]
    const node = { id: bad, host: bad, is_self: false, roles: [bad], workers: [worker], differs: true, differences }
    const stranger = createServer((_, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ cluster: bad, nodes: [node] }))
    })
    await once(stranger.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`
    for (const words of [['status', '--cluster'], ['nodes']]) {
      const { out } = await workspace.svc([...words, '--url', url])
      expect(out, words.join(' ')).to.include('NODE_DIFFERS')
      expect(out.replaceAll('\n', ''), words.join(' ')).to.not.match(/\p{Cc}/u)
      expect(out.split('\n').filter(line => line.startsWith('NODE_DIFFERS y'))).to.deep.equal([])
    }
    stranger.close()
  })

  it('looks again and again with --watch: a line a look where no terminal is, until Ctrl-C', async () => {
    const child = workspace.start(['status', '--watch', '--interval', '0.1'])
    const lines = createInterface({ input: child.stdout! })
    const [first] = (await once(lines, 'line')) as [string]
    expect(first).to.match(/^\d\d:\d\d:\d\d {2}healthy {2}1 worker /)
    await chat(server.url, 'hello')
    const rates: string[] = []
    lines.on('line', line => rates.push(line))
    while (!rates.some(line => / {2}(?!0\/s)[\d.]+\/s .*p50/.test(line))) await once(lines, 'line')
    child.kill('SIGINT')
    expect(await once(child, 'exit')).to.deep.equal([0, null])
  })

  it('prints a JSON line with the growth at each refresh with --watch --json', async () => {
    const child = workspace.start(['status', '--watch', '--interval', '0.1', '--json'])
    const lines = createInterface({ input: child.stdout! })
    expect(factsOf(String((await once(lines, 'line'))[0])).recent).to.equal(undefined)
    await chat(server.url, 'hello')
    let facts: Facts
    do facts = factsOf(String((await once(lines, 'line'))[0]))
    while ((facts.recent?.requests ?? 0) === 0)
    expect(facts.recent?.requests).to.equal(1)
    expect(facts.recent?.requests_per_second).to.be.above(0)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).to.deep.equal([0, null])
  })
})

describe('svc status of a server that asks for a credential', () => {
  let workspace: Workspace
  let server: Awaited<ReturnType<Workspace['serve']>>
  before(async () => {
    workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: { auth: { enabled: true } }\n')
    server = await workspace.serve([], { env: { SVC_API_KEY: 'a-secret-key-of-32-characters-00' } })
  })
  after(() => workspace[Symbol.asyncDispose]())

  it('needs none for the server of its home', async () => {
    const { code, out } = await workspace.svc(['status'])
    expect([code, out.includes('returned nothing')]).to.deep.equal([0, false])
    expect(out)
      .to.contain(`at ${server.url} is healthy`)
      .and.match(/^\d+ +ready/m)
    const refused = await workspace.svc(['status', '--header', 'authorization: Bearer wrong'])
    expect(refused.out).to.contain('AUTHENTICATION_FAILED')
  })

  it('sends SVC_API_KEY to a server that --url names; without it says what is missing and ends with 1', async () => {
    const there = ['--url', server.url]
    const without = await workspace.svc(['status', ...there])
    expect(without.code).to.equal(1)
    expect(without.out).to.contain(`at ${server.url} is healthy`)
    expect(without.out).to.match(/\/api\/v1\/status returned nothing: AUTHENTICATION_FAILED .*SVC_API_KEY/)
    const refused = factsOf((await workspace.svc(['status', ...there, '--json'])).out)
    expect([refused.ok, refused.untold.map(item => item.path)]).to.deep.equal([false, ['/api/v1/status', '/metrics']])
    const given = await workspace.svc(['status', ...there], { env: { SVC_API_KEY: 'a-secret-key-of-32-characters-00' } })
    expect([given.code, given.out.includes('returned nothing')]).to.deep.equal([0, false])
  })

  it('sends a token in SVC_API_KEY as a bearer token, as svc chat does', async () => {
    const token = (await workspace.svc(['tokens', 'create'])).out.trim()
    const given = { env: { SVC_API_KEY: token } }
    const said = await workspace.svc(['chat', '--url', server.url, 'hi'], given)
    expect(said).to.include({ code: 0, out: 'You said: hi\n' })
    expect(
      factsOf((await workspace.svc(['status', '--url', server.url, '--json'], given)).out).untold.map(item => item.path)
    ).to.not.include('/api/v1/status')
    const refused = await workspace.svc(['chat', '--url', server.url, 'hi'], { env: { SVC_API_KEY: `${token}x` } })
    expect(refused.err)
      .to.match(/^AUTHENTICATION_FAILED/)
      .and.contain('an API key or a token')
  })
})

describe('svc status', () => {
  const it = sideBySide()
  it('is not counted by the limits of clients', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: { rate_limit: { enabled: true, requests_per_minute: 2 } }\n')
    const server = await workspace.serve()
    for (let times = 0; times < 4; times++) expect((await workspace.svc(['status'])).code).to.equal(0)
    const asked = () => fetch(`${server.url}/api/v1/status`).then(({ status }) => status)
    expect([await asked(), await asked(), await asked()]).to.deep.equal([200, 200, 429])
    const { code, out } = await workspace.svc(['status'])
    expect([code, out.includes('RATE_LIMITED')]).to.deep.equal([0, false])
  })

  it('shows how the running server is, in 80 columns', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve(['--workers', '2'])
    await server.said(/worker \d+ is ready/)
    for (const message of ['hello', '/fail authentication']) await chat(server.url, message)
    await fetch(`${server.url}/api/v1/nothing`)
    const { code, out, err } = await workspace.svc(['status'])
    expect([code, err]).to.deep.equal([0, ''])
    expect(out).to.match(new RegExp(`^svc \\S+ at ${server.url} is healthy +process ${server.process.pid}, up \\d+ s\n`))
    expect(out).to.match(/^requests +\d+ in all, 0 under way, 1 refused \(4xx\), 1 failed \(5xx\)$/m)
    expect(out).to.match(/^latency +p50 [\d.]+ m?s, p95 [\d.]+ m?s$/m)
    expect(out).to.match(/^checks +database, providers, cache, workflows, models healthy$/m)
    expect(out).to.match(/^store +store-sqlite$/m)
    expect(out.match(/^\d+ +ready +\d+ +\d+ s$/gm)).to.have.length(2)
    expect(out).to.match(/^POST \/api\/v1\/chat +2 +0 +1 +/m)
    expect(out).to.match(/^local +healthy +2 +1 +/m)
    expect(out).to.match(/^PLUGIN \(HOOKS\) +CALLS +ERRORS +MEAN +TIME$/m)
    expect(out.split('\n').filter(line => line.length > 80)).to.deep.equal([])
  })

  it('says what to do where no server runs, or several do', async () => {
    await using workspace = await makeWorkspace()
    const none = await workspace.svc(['status'])
    expect([none.code, none.out]).to.deep.equal([1, ''])
    expect(none.err).to.contain('SERVER_NONE').and.contain('svc serve')
    expect((await workspace.svc(['status', '--live'])).code).to.equal(1)
    const servers = [await workspace.serve(), await workspace.serve()] as const
    const several = await workspace.svc(['status'])
    expect(several.code).to.equal(1)
    expect(several.err).to.contain('SERVER_AMBIGUOUS').and.contain('--port')
    const [{ url }] = servers
    expect(factsOf((await workspace.svc(['status', '--json', '--port', new URL(url).port])).out).url).to.equal(url)
    const gone = await workspace.svc(['status', '--url', 'http://127.0.0.1:1'])
    expect([gone.code, gone.err]).to.satisfy(([code, err]: [number, string]) => code === 1 && err.includes('SERVER_UNREACHABLE'))
  })

  it('reaches the server of its home over TLS, with any certificate, and no other server', async () => {
    await using workspace = await makeWorkspace()
    const { cert, key } = await writeCertificate(workspace.folder, makeCertificate())
    const server = await workspace.serve(['--ssl-cert', cert, '--ssl-key', key])
    expect(server.url).to.match(/^https:/)
    expect((await workspace.svc(['status'])).out).to.contain('is healthy')
    expect(await workspace.svc(['status', '--live'])).to.include({ code: 0, out: '', err: '' })
    const stranger = await workspace.svc(['status', '--url', server.url])
    expect([stranger.code, stranger.out]).to.deep.equal([1, ''])
    const trusting = { env: { NODE_EXTRA_CA_CERTS: cert } }
    for (const args of [['status'], ['chat', 'hi']]) {
      const { err } = await workspace.svc([...args, '--url', server.url])
      expect(err)
        .to.match(/^SERVER_UNREACHABLE/)
        .and.contain('its certificate is not trusted')
        .and.contain('NODE_EXTRA_CA_CERTS=')
      expect((await workspace.svc([...args, '--url', server.url], trusting)).code, args[0]).to.equal(0)
    }
  })

  it('ends with 1 when the server is unhealthy, and names what is', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('package.json', '{ "type": "module" }')
    await workspace.write(
      'sick.ts',
      `import { definePlugin } from '@svc/core'
import { Checks } from '@svc/core/contracts'
export default definePlugin({ setup: scope => void scope.add(Checks, 'queue', { probe: async () => ({ status: 'unhealthy' }) }) })`
    )
    await workspace.write('svc.config.yaml', 'plugins: [./sick.ts]\n')
    await workspace.serve()
    const { code, out } = await workspace.svc(['status'])
    expect([code, /is unhealthy/.test(out), /queue unhealthy/.test(out)]).to.deep.equal([1, true, true])
  })

  it('goes on watching while the server is away, and sees it come back', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const child = workspace.start(['status', '--watch', '--interval', '0.1'])
    const [lines, errors] = [createInterface({ input: child.stdout! }), createInterface({ input: child.stderr! })]
    await once(lines, 'line')
    await server.end()
    while (!/SERVER_(NONE|UNREACHABLE)/.test(String((await once(errors, 'line'))[0])));
    const healthy = once(lines, 'line')
    await workspace.serve()
    expect(String((await healthy)[0])).to.contain('healthy')
    child.kill('SIGINT')
    expect(await once(child, 'exit')).to.deep.equal([0, null])
  })

  it('refuses an interval that is none', async () => {
    await using workspace = await makeWorkspace()
    const { code, err } = await workspace.svc(['status', '--watch', '--interval', 'soon'])
    expect([code, err.includes('soon')]).to.deep.equal([2, true])
  })
})
