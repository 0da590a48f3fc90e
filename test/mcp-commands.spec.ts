import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { McpServerInfo } from '@svc/core/contracts'
import { expect } from 'chai'
import { openAuthority } from '../plugins/mcp/client/test/support/authority.ts'
import { wait, until as asked } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { hostileCommand } from './support/hostile.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { SVC } from './support/entry.ts'
import { configureFew } from './support/tides.ts'

const DOOR = fileURLToPath(new URL('./support/mcp-door.ts', import.meta.url))

/** A state that has not come about by then never will. */
const LIMIT_MS = 30_000

describe('svc mcp', function () {
  // a dozen processes, one after the other
  this.timeout(60_000)
  const it = sideBySideIn<string>(async run => {
    const home = await newHome()
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [DOOR] }))
    await run(home).finally(() => rm(home, { recursive: true, force: true }))
  })
  const svcIn =
    (home: string) =>
    (...args: string[]) =>
      runSvc(['mcp', ...args], { home, share: true })
  const fresh = (service: Service) => createClient(service.url, { keepAlive: false })
  const call = async (service: Service, server: string, tool: string, args = {}) =>
    JSON.stringify((await fresh(service).post('/mcp-call', { server, tool, args })).body)
  const until = async (service: Service, name: string, isTrue: (info: McpServerInfo) => boolean) => {
    for (const endsAt = performance.now() + LIMIT_MS; ; ) {
      const { servers } = (await fresh(service).get('/mcp-list')).body as { servers: McpServerInfo[] }
      const info = servers.find(server => server.name === name)
      if (info && isTrue(info)) return info
      if (performance.now() > endsAt) throw new Error(`it never came about: ${JSON.stringify(servers)}`)
      await wait()
    }
  }
  const { command, args } = hostileCommand()

  it('adds, shows, approves and removes servers of a svc that runs', async home => {
    const svc = svcIn(home)
    const fickle = hostileCommand({ fickle: true })
    await svc('add', 'one', '--', fickle.command, ...fickle.args)
    await using service = await startService({ home })
    await until(service, 'one', info => info.state === 'connected')
    await writeFile(
      join(home, 'other.json'),
      JSON.stringify({ mcpServers: { two: { command, args, env: { KEY: 'abc123' } }, one: { command } } })
    )
    const imported = await svc('import', 'other.json')
    expect([imported.code, imported.out.includes('two'), imported.err.includes('one: left out')]).to.deep.equal([0, true, true])
    await until(service, 'two', info => info.state === 'connected')

    expect(await call(service, 'one', 'echo', { text: 'first' })).to.include('first')
    await until(service, 'one', info => info.state === 'degraded' && (info.changed?.length ?? 0) > 0)
    // the worker of before the import may have had the server until now: its successor starts it anew, with the tools of before
    const list = await asked(
      async () => {
        await call(service, 'one', 'echo', { text: 'again' })
        return svc('list')
      },
      ({ out }) => out.includes('degraded')
    )
    expect(list.out).to.match(/one +degraded +13 \(1 changed\).*protocol_error: tools that changed: echo/)
    expect(list.out).to.match(/two +connected +14/)
    expect(list.out).to.not.include('abc123')
    const listed = JSON.parse((await svc('list', '--json')).out) as { servers: Record<string, unknown>[] }
    expect(listed.servers[0]).to.include.keys('last_error', 'protocol_version', 'call_limit_ms', 'runs')
    expect(JSON.stringify(listed)).to.not.match(/"[a-z]+[A-Z]\w*":/)
    expect((await svc('tools', 'one')).out).to.match(/echo \(changed\).*\n {2}description: ".*" → ".*"/)
    expect(await call(service, 'one', 'echo')).to.include('tool_not_found')
    expect((await svc('approve', 'one')).err).to.include('approved: echo')
    await until(service, 'one', info => info.tools.includes('echo'))
    expect(await call(service, 'one', 'echo', { text: 'again' })).to.include('again')

    expect((await svc('remove', 'two')).code).to.equal(0)
    expect(await call(service, 'two', 'echo')).to.include('MCP_SERVER_UNKNOWN')
    expect(await readFile(join(home, 'mcp.yaml'), 'utf8')).to.not.include('two')
  })

  it('asks the svc that runs, which has other variables than the command', async home => {
    const entry = { name: 'one', command, args, env: { TOKEN: '${ONLY_OF_THE_SERVER}' } }
    await configureFew(home, { plugins: [DOOR], mcp: { clients: [entry] } }, ['admin-api', 'mcp-client'])
    const svc = svcIn(home)
    expect((await svc('test', 'one')).out).to.match(/✗ start .*ONLY_OF_THE_SERVER, which is not set/)
    await using service = await startService({ home, env: { ONLY_OF_THE_SERVER: 'x' } })
    await until(service, 'one', info => info.state === 'connected')
    const tested = await svc('test', 'one', '--tool', 'echo', '--args', '{"text": "hi"}')
    expect([tested.code, tested.out]).to.satisfy(([code, out]: [number, string]) => code === 0 && /✓ call .*hi/.test(out))
    expect((await svc('tools', 'one')).out).to.include('echo')
  })

  it('logs a person in, and the svc that runs connects', async home => {
    await using authority = await openAuthority()
    await svcIn(home)('add', 'one', authority.remote.url, '--issuer', authority.issuer)
    await using service = await startService({ home })
    await until(service, 'one', info => info.state === 'needs_auth')
    const child = spawn(process.execPath, [...SVC, 'mcp', 'login', 'one'], {
      cwd: home,
      env: { PATH: process.env.PATH, SVC_HOME: home },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    using _end = { [Symbol.dispose]: () => void child.kill() }
    const ended = once(child, 'exit')
    const { value: page } = await createInterface(child.stdout)[Symbol.asyncIterator]().next()
    expect((await fetch(page as string)).status).to.equal(200)
    expect(await ended).to.deep.equal([0, null])
    await until(service, 'one', info => info.state === 'connected')
    expect(await call(service, 'one', 'greet')).to.include('hello from v2')
    expect(authority.grants).to.deep.equal(['authorization_code'])
  })
})
