import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { McpServerInfo } from '@svc/core/contracts'
import { expect } from 'chai'
import { linesOf } from '../src/commands/tools.ts'
import { openCommandHost } from './support/commands.ts'
import { hostile } from './support/client-host.ts'
import { listen } from './support/remote.ts'
import { openHostile } from '../../../../test/support/hostile.ts'

const { command, args } = hostile()
interface Tried {
  readonly ok: boolean
  readonly steps: readonly { readonly step: string; readonly ms: number; readonly error?: { readonly class: string } }[]
}

describe('svc mcp without a server that runs', () => {
  it('writes servers down, shows them without their secrets, and takes them out', async () => {
    await using host = await openCommandHost([{ name: 'configured', url: 'https://a.example/mcp?key=abc123', enabled: false }])
    expect(
      (await host.run('add', 'one', '--env', 'A=abc123', '--timeout', '5', '--allow-path', '/data', '--', command, ...args)).code
    ).to.equal(0)
    await host.run('add', 'docs', 'https://docs.example/mcp', '--api-key-env', 'DOCS_KEY')
    const file = join(host.home, 'mcp.yaml')
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
    const { out, err } = await host.run('list')
    expect(out)
      .to.match(/configured +disabled/)
      .and.match(/one +disconnected +0 /)
      .and.not.include('abc123')
    expect(err).to.include('no server is running')
    const { servers } = JSON.parse((await host.run('list', '--json')).out) as { servers: McpServerInfo[] }
    expect(servers.map(server => [server.name, server.state])).to.deep.equal([
      ['configured', 'disabled'],
      ['one', 'disconnected'],
      ['docs', 'disconnected'],
    ])
    expect((await host.run('remove', 'one')).code).to.equal(0)
    expect(await readFile(file, 'utf8'))
      .to.include('docs')
      .and.not.include('one')
    expect(await host.run('remove', 'configured')).to.include({ code: 'MCP_SERVER_UNKNOWN' })
  })

  for (const [said, ...words] of [
    ['it needs either a URL or a command', 'add', 'one'],
    ['must be 1 to 32', 'add', 'o n e', 'http://a/'],
    ['must be a URL', 'add', 'one', 'a.example'],
    ['--env must be NAME=value', 'add', 'one', '--env', 'x', '--', 'x'],
    ['timeout must be', 'add', 'one', '--timeout', 'soon', 'http://a/'],
  ])
    it(`says "${said}" to: ${words.join(' ')}`, async () => {
      await using host = await openCommandHost()
      const { code, err } = await host.run(words[0]!, ...words.slice(1))
      expect(code).to.equal('COMMAND_LINE_INVALID')
      expect(err).to.include(said).and.include('Usage: svc mcp')
    })

  for (const [said, ...words] of [
    ['Unexpected argument: b', 'add', 'one', 'http://a/', 'b'],
    ['Nonexistent flag: --colour', 'list', '--colour'],
    ['must be provided when using --args: --tool', 'test', 'one', '--args', '{}'],
    ['Expected an integer but received: x', 'list', '--port', 'x'],
  ])
    it(`says "${said}" to: ${words.join(' ')}`, async () => {
      await using host = await openCommandHost()
      const { code, err } = await host.run(words[0]!, ...words.slice(1))
      expect(code).to.equal('COMMAND_LINE_INVALID')
      expect(err).to.include(said)
    })

  it('tries a program step by step, and calls a tool of it', async () => {
    await using host = await openCommandHost([{ name: 'one', ...hostile() }])
    const good = await host.run('test', 'one', '--tool', 'echo', '--args', '{"text": "hi there"}')
    expect(good.out).to.match(/✓ start .*\n✓ handshake .*2025-11-25.*\n✓ list .*14 tools\n✓ call .*hi there\n/)
    const bad = await host.run('test', 'one', '--tool', 'fail', '--json')
    const { ok, steps } = JSON.parse(bad.out) as Tried
    expect([bad.code, ok, steps.at(-1)?.step, steps.at(-1)?.error?.class]).to.deep.equal([1, false, 'call', 'tool_error'])
    const unknown = await host.run('test', 'oen')
    expect([unknown.code, unknown.err]).to.deep.equal([
      'MCP_SERVER_UNKNOWN',
      'there is no MCP server "oen" did you mean "one"?\n',
    ])
    expect((await host.run('test', 'other')).err).to.equal('there is no MCP server "other" Use one of: one\n')
  })

  it('books the time of each step where it was spent', async () => {
    const SLOW_MS = 50
    const slow = { slowMs: SLOW_MS }
    await using remote = await openHostile(slow)
    await using host = await openCommandHost([
      { name: 'program', ...hostile(slow) },
      { name: 'remote', url: remote.url },
    ])
    const timesOf = async (name: string) => {
      const begun = performance.now()
      const { out } = await host.run('test', name, '--tool', 'echo', '--args', '{"text": "hi"}', '--json')
      const { steps } = JSON.parse(out) as Tried
      const ms = Object.fromEntries(steps.map(one => [one.step, one.ms]))
      // no time is booked twice
      expect(Object.values(ms).reduce((sum, one) => sum + one, 0)).to.be.below(performance.now() - begun)
      for (const step of ['handshake', 'list', 'call']) expect(ms[step], step).to.be.at.least(SLOW_MS - 1)
      return ms
    }
    expect(await timesOf('program')).to.have.keys('start', 'handshake', 'list', 'call')
    // the server asked for no login
    expect((await timesOf('remote')).auth).to.equal(0)
  })

  it('says of a program that cannot be started whose it is, and what it is called there', async () => {
    await using host = await openCommandHost([{ name: 'nope', command: '/no/such' }])
    expect((await host.run('test', 'nope')).out).to.match(
      /✗ start .*nope: its command could not be started: there is no such program.*: \/no\/such; Install the program/
    )
  })

  it('says what a server that is added may do on this machine, and shows it', async () => {
    await using host = await openCommandHost()
    expect((await host.run('add', 'every', '--', command, ...args)).err).to.match(
      /every runs with all rights of svc; .* svc mcp remove every, then add it with --sandbox/
    )
    for (const flags of [['--sandbox'], ['--network'], ['--allow-path', '/data']])
      expect((await host.run('add', flags[0]!.slice(2), ...flags, '--', command)).err).to.include('in the process sandbox')
    expect((await host.run('add', 'far', 'https://docs.example/mcp')).err).to.not.include('far runs')
    const file = join(host.home, 'other.json')
    await writeFile(file, JSON.stringify({ mcpServers: { other: { command }, away: { url: 'https://a.example/mcp' } } }))
    expect((await host.run('import', file)).err).to.match(/with all rights of svc, .* run: other$/m)
    const { out } = await host.run('list')
    expect(out)
      .to.match(/NAME +STATE +TOOLS +RUNS/)
      .and.match(/every .* all rights /)
      .and.match(/network .* sandbox /)
      .and.match(/far .* remote /)
    const { servers } = JSON.parse((await host.run('list', '--json')).out) as { servers: { name: string; runs: string }[] }
    expect(servers.map(server => server.runs).join()).to.equal('all rights,sandbox,sandbox,sandbox,remote,all rights,remote')
  })

  it('says at which step a remote server cannot be reached, and why', async () => {
    await using refusing = await listen((_, response) => void response.writeHead(401).end())
    await using odd = await listen(
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    )
    const port = Number(new URL(refusing.url).port)
    await using host = await openCommandHost([
      { name: 'nowhere', url: 'http://nowhere.invalid/mcp' },
      { name: 'closed', url: 'http://127.0.0.1:1/mcp' },
      { name: 'plain', url: `https://127.0.0.1:${port}/mcp` },
      { name: 'refusing', url: `${refusing.url}/mcp` },
      { name: 'odd', url: `${odd.url}/mcp` },
      { name: 'keyless', url: `${odd.url}/mcp`, api_key_env: 'SVC_TEST_NOWHERE' },
    ])
    const failure = async (name: string) => {
      const { steps } = JSON.parse((await host.run('test', name, '--json')).out) as Tried
      return `${steps.at(-1)?.step} ${steps.at(-1)?.error?.class}`
    }
    expect(await failure('nowhere')).to.equal('resolve connection_refused')
    expect(await failure('closed')).to.equal('connect connection_refused')
    expect(await failure('plain')).to.equal('tls connection_refused')
    expect(await failure('refusing')).to.equal('auth authentication_failed')
    expect(await failure('odd')).to.equal('handshake protocol_error')
    expect(await failure('keyless')).to.equal('auth authentication_failed')
  })

  it('pins new tools, and approves no unknown one', async () => {
    await using host = await openCommandHost([{ name: 'one', ...hostile({ hidden: true }), deny: ['env'] }])
    const { out } = await host.run('tools', 'one')
    expect(out).to.match(/^echo {2}Does echo\.\n {2}hidden characters removed: description U\+200B/m)
    expect(out).to.include('env (excluded by the configuration)')
    expect(JSON.parse((await host.run('list', '--json')).out))
      .to.have.nested.property('servers[0].tools')
      .that.includes('echo')
    expect((await host.run('approve', 'one', 'ekko')).code).to.equal('MCP_TOOL_UNKNOWN')
    expect((await host.run('approve', 'one')).err).to.include('no tool of one had changed')
  })

  it('shows of what has changed all that there is to see', () => {
    const difference = [`description: "${'a'.repeat(2_000)}" → "${'b'.repeat(2_000)} Send all."`]
    const lines = linesOf({ name: 'echo', description: '', inputSchema: {}, status: 'changed', difference })
    expect(lines.join('\n')).to.match(/^echo \(changed\)\n {2}description.* Send all\."$/)
  })

  it('imports the servers of other clients, and reports the rest', async () => {
    await using host = await openCommandHost([{ name: 'taken', command: 'x' }])
    const file = join(host.home, 'other.json')
    await writeFile(file, JSON.stringify({ mcpServers: { one: { command, args }, taken: { command: 'y' }, odd: {} } }))
    const { code, out, err } = await host.run('import', file)
    expect([code, out.trim().endsWith('one')]).to.deep.equal([0, true])
    expect(err).to.include('taken: left out').and.include('odd: left out')
    expect((await host.run('import', join(host.home, 'none.json'))).code).to.equal('MCP_IMPORT_INVALID')
  })

  it('logs in to nothing that knows no login', async () => {
    await using host = await openCommandHost([
      { name: 'program', command: 'x' },
      { name: 'keyed', url: 'http://127.0.0.1:1/mcp', api_key_env: 'KEY' },
    ])
    expect(await host.run('login', 'program')).to.include({ code: 'COMMAND_LINE_INVALID' })
    expect((await host.run('login', 'keyed')).err).to.include('keyed uses the key of KEY')
  })
})
