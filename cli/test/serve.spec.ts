import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { systemContext } from '@svc/core'
import { findServers, KEEP_COMPILED_CODE, youngGeneration } from '@svc/runtime'
import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { makeWorkspace } from './support/svc.ts'

const ctx = () => systemContext(AbortSignal.timeout(10_000))

async function stream(url: string, message: string): Promise<Response> {
  return fetch(`${url}/api/v1/chat/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message }),
  })
}

/** The lines so far once one matches, and all of them at the end. */
async function linesUntil(stream: Readable, pattern: RegExp): Promise<[string[], Promise<string[]>]> {
  const lines: string[] = []
  const found = Promise.withResolvers<void>()
  const reader = createInterface({ input: stream })
  reader.on('line', line => {
    lines.push(line)
    if (pattern.test(line)) found.resolve()
  })
  const all = once(reader, 'close').then(() => lines)
  await Promise.race([found.promise, all])
  return [[...lines], all]
}

describe('svc serve', () => {
  const it = sideBySide()
  it('says where it listens, what it loaded and how long each plugin took, serves, and ends with 0 at Ctrl-C', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const health = await fetch(`${server.url}/health`)
    expect(health.status).to.equal(200)
    expect(((await health.json()) as { status: string }).status).to.equal('healthy')
    expect(server.err()).to.match(/@svc\/plugin-http +[\d.]+ m?s\n/)
    expect(server.err()).to.contain(`; home: ${workspace.home}; press Ctrl-C to stop`)
    const { code } = await server.end('SIGINT')
    expect(code).to.equal(0)
  })

  it('says that it listens on all addresses, and which files its configuration came from', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: { host: 0.0.0.0 }\n')
    await workspace.write('../home/svc.config.yaml', 'log: { level: info }\n')
    const server = await workspace.serve()
    expect(server.err()).to.match(/listens on http:\/\/127\.0\.0\.1:\d+ \(all addresses\)   \(ready/)
    expect(server.err())
      .to.contain(`${workspace.home}/svc.config.yaml`)
      .and.match(/configuration: .*(^|[ ,])svc\.config\.yaml/)
    await server.end()
  })

  it('drains at SIGTERM: a running reply is sent to its end', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const response = await stream(server.url, '/pace 30\none two three four five six seven eight')
    const reader = response.body!.getReader()
    await reader.read()
    const ending = server.end('SIGTERM')
    let rest = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) rest += Buffer.from(part.value).toString()
    expect(rest).to.contain('"status":"completed"')
    const { code, err } = await ending
    expect(code).to.equal(0)
    expect(err).to.match(/^svc: draining.*\nsvc: ended after [\d.]+ m?s\n$/m)
  })

  it('ends at once at the second Ctrl-C', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const response = await stream(server.url, '/delay 60000\nhello')
    const reading = response.text().catch(() => 'cut off')
    server.process.kill('SIGINT')
    await server.said(/draining/)
    const { code, err } = await server.end('SIGINT')
    expect(code).to.equal(130)
    expect(err).to.not.contain('ended after')
    await reading
  })

  it('drains at a SIGINT that only its launcher gets, outside of the foreground of a terminal', async () => {
    await using workspace = await makeWorkspace()
    // without the condition for sources, svc.js starts another Node process
    const entry = fileURLToPath(new URL('../bin/svc.js', import.meta.url))
    const { SVC_TEST_ENTRY: _, ...env } = process.env
    const launcher = spawn(process.execPath, [entry, 'serve', '--port', '0', '--json'], {
      cwd: workspace.folder,
      env: { ...env, SVC_HOME: workspace.home },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true, // a session of its own: no terminal
    })
    const [, all] = await linesUntil(launcher.stdout, /"event":"ready"/)
    launcher.kill('SIGINT')
    expect((await once(launcher, 'exit'))[0]).to.equal(0)
    expect((await all).join('\n')).to.contain('"event":"ended"')
  })

  it('makes its home for its owner alone, and listens there for commands until it ends', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    expect((await stat(workspace.home)).mode & 0o777).to.equal(0o700)
    const [found, ...others] = await findServers(workspace.home)
    expect(others).to.deep.equal([])
    expect(found?.info).to.include({ url: server.url, pid: server.process.pid })
    await found?.control.stop(undefined, ctx())
    const [code] = await once(server.process, 'exit')
    expect(code).to.equal(0)
    found?.[Symbol.dispose]()
    expect(await findServers(workspace.home)).to.deep.equal([])
  })

  it('starts a worker whose compiled code V8 keeps while it rests, with a large young generation', async function (this: Mocha.Context) {
    if (process.platform !== 'linux') return void this.skip()
    await using workspace = await makeWorkspace()
    await workspace.serve()
    const [found] = await findServers(workspace.home)
    const started = await readFile(`/proc/${found?.info.workers[0]?.pid}/cmdline`, 'utf8')
    expect(started.split('\0')).to.include.members([...KEEP_COMPILED_CODE, ...youngGeneration()])
    found?.[Symbol.dispose]()
  })

  it('replaces a worker that is killed, on the same port', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const [found] = await findServers(workspace.home)
    const [worker] = found?.info.workers ?? []
    process.kill(worker?.pid ?? 0, 'SIGKILL')
    await server.said(/worker \d+ is ready/)
    expect((await fetch(`${server.url}/health`)).status).to.equal(200)
    const next = await found?.control.info(ctx())
    expect(next?.workers.map(item => item.pid))
      .to.have.length(1)
      .and.not.include(worker?.pid)
    found?.[Symbol.dispose]()
    expect((await server.end()).code).to.equal(0)
  })

  it('writes its log as JSON lines to the standard output, and nothing else', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve(['--debug'])
    await fetch(`${server.url}/health`)
    const { out } = await server.end()
    const lines = out
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as { msg: string; route?: string })
    expect(lines.map(line => line.msg)).to.include('listening')
    expect(lines.map(line => line.route)).to.include('/health')
  })

  it('prints events as JSON to the standard output with --json', async () => {
    await using workspace = await makeWorkspace()
    const child = workspace.start(['serve', '--port', '0', '--json'])
    const [lines, all] = await linesUntil(child.stdout!, /"event":"ready"/)
    const events = lines.map(line => JSON.parse(line) as Record<string, unknown>)
    const ready = events.find(event => event.event === 'ready')
    expect(ready).to.include.keys('url', 'pid', 'ready_after_ms', 'plugins', 'configuration')
    child.kill('SIGINT')
    expect((await once(child, 'exit'))[0]).to.equal(0)
    const names = (await all).map(line => (JSON.parse(line) as { event?: string }).event)
    expect(names.filter(event => event === 'draining' || event === 'ended')).to.deep.equal(['draining', 'ended'])
  })

  it('serves on when the reader of its output has gone, and ends', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve(['--debug'])
    server.process.stdout!.destroy()
    server.process.stderr!.destroy()
    for (let i = 0; i < 50; i++) expect((await fetch(`${server.url}/health`)).status).to.equal(200)
    server.process.kill('SIGINT')
    expect((await once(server.process, 'exit'))[0]).to.equal(0)
  })
})

describe('svc serve that cannot start', () => {
  const it = sideBySide()
  it('says that the port is taken, and ends with 1', async () => {
    await using workspace = await makeWorkspace()
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { code, err } = await workspace.svc(['serve', '--port', String(port)])
    other.close()
    expect(code).to.equal(1)
    expect(err)
      .to.contain(`${port}`)
      .and.match(/^PORT_TAKEN/m)
  })

  it('says that the port is taken by a server of this very home', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const { port } = new URL(server.url)
    const { code, err } = await workspace.svc(['serve', '--port', port])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^PORT_TAKEN {2}@svc\/plugin-http/m)
      .and.contain(`is in use by a server of this svc home (process ${server.process.pid})`)
      .and.contain('svc reload')
    await server.end()
  })

  it('reports every problem of the configuration with file and line, and ends with 1', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server:\n  port: many\n  hots: x\nchatt:\n  timeout_ms: 1\n')
    const { code, err } = await workspace.svc(['serve'])
    expect(code).to.equal(1)
    expect(err).to.contain('(svc.config.yaml:2)').and.contain('(svc.config.yaml:3)').and.contain('(svc.config.yaml:4)')
    expect(err).to.contain('did you mean "host"').and.contain('did you mean "chat"')
  })

  const asked: [string, string[]][] = [['an MCP server', ['--mcp']]]
  for (const [what, args] of asked) {
    it(`refuses ${what} with the hint while no plugin does it`, async () => {
      await using workspace = await makeWorkspace()
      await workspace.write('svc.config.yaml', 'plugins: [{ use: "@svc/plugin-mcp-server", enabled: false }]\n')
      const { code, err } = await workspace.svc(['serve', '--port', '0', ...args])
      expect(code).to.equal(1)
      expect(err)
        .to.match(/^CONFIG_UNOWNED/m)
        .and.contain(what)
        .and.contain('(flags)')
    })
  }

  it('takes a documented value that nothing acts on yet', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write(
      'svc.config.yaml',
      'server:\n  rate_limit:\n    enabled: false\n    requests_per_minute: 60\n  workers: 1\n'
    )
    const server = await workspace.serve()
    expect((await server.end()).code).to.equal(0)
  })

  it('ends with 2 when the command line itself is wrong', async () => {
    await using workspace = await makeWorkspace()
    for (const args of [['serve', '--prot', '1'], ['serve', '--port', 'x'], ['sevre'], ['serve', 'extra']]) {
      const { code, err } = await workspace.svc(args)
      expect(code, args.join(' ')).to.equal(2)
      expect(err).to.match(/^COMMAND_LINE_INVALID/)
    }
  })
})
