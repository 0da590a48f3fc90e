import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'
import { makeWorkspace } from './support/svc.ts'

describe('svc reload', () => {
  const it = sideBySide()
  it('says which workers serve now and which finish their requests', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve([], { env: { SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__RESUME_S: '1' } })
    const body = JSON.stringify({ message: '/delay 60000\nlater' })
    const leaving = new AbortController()
    const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal: leaving.signal }
    expect((await fetch(`${server.url}/api/v1/chat/stream`, post)).status).to.equal(200)
    const { code, out } = await workspace.svc(['reload'])
    expect(code).to.equal(0)
    expect(out).to.contain(`reloaded: a new worker serves ${server.url}`)
    expect(out).to.match(
      /1 old \(\d+\) finish their requests; svc aborts requests that take longer than 150\.0 s \(chat\.queue_timeout_ms and/
    )
    leaving.abort()
    const { code: again, out: json } = await workspace.svc(['reload', '--json'])
    expect(again).to.equal(0)
    expect(JSON.parse(json)).to.include.keys('url', 'ready', 'draining', 'drain_limit_ms')
    await server.said(/reloaded: a new worker serves/)
    expect((await server.end()).code).to.equal(0)
  })

  it('is one line with its reason in the log of the server; only the start says that it listens', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve(['--workers', '2'])
    expect((await workspace.svc(['reload'])).code).to.equal(0)
    server.process.kill('SIGHUP')
    await server.said(/reloaded: [^]*reloaded: /)
    const lines = (await server.end()).out
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as { readonly msg: string; readonly reason?: string })
      .filter(({ msg }) => msg === 'listening' || msg.startsWith('reload'))
    const reload = 'reload: the first new worker is ready'
    expect(lines.map(({ msg, reason }) => [msg, reason])).to.deep.equal([
      ['listening', undefined],
      [reload, 'svc reload'],
      [reload, 'SIGHUP'],
    ])
  })

  it('exits with 1 and all problems of an invalid configuration; the old workers keep serving', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    await workspace.write('svc.config.yaml', 'server:\n  hots: x\nchat:\n  message_limit: many\n')
    const { code, err } = await workspace.svc(['reload'])
    expect(code).to.equal(1)
    expect(err).to.contain('the old workers keep serving').and.contain('(svc.config.yaml:2)').and.contain('(svc.config.yaml:4)')
    expect((await fetch(`${server.url}/health`)).status).to.equal(200)
    expect((await server.end()).code).to.equal(0)
  })

  it('ends with 1 when the new worker dies right after it was ready; the old one serves on', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const reload = workspace.svc(['reload'])
    const [, pid] = await server.said(/worker (\d+) is ready/)
    process.kill(Number(pid), 'SIGKILL')
    const { code, err } = await reload
    expect(code).to.equal(1)
    expect(err).to.contain('the old workers keep serving').and.contain('was ready and ended within')
    expect((await fetch(`${server.url}/health`)).status).to.equal(200)
    expect((await server.end()).code).to.equal(0)
  })

  it('replaces a worker that dies by one like it, whatever has happened to the configuration on disk', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'chat:\n  message_limit: 5\n')
    const server = await workspace.serve()
    const asked = async () => {
      const body = JSON.stringify({ message: 'longer than five' })
      const answer = await fetch(`${server.url}/api/v1/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      return ((await answer.json()) as { details: unknown }).details
    }
    const refused = { field: 'message', reason: 'must have at most 5 characters, has 16', limit: 5, count: 16 }
    expect(await asked()).to.deep.equal(refused)
    for (const [times, config] of ['chat:\n  message_limit: 500\n', 'chat:\n  message_limt: [\n'].entries()) {
      await workspace.write('svc.config.yaml', config)
      const [{ pid }] = JSON.parse((await workspace.svc(['status', '--json'])).out).workers
      process.kill(pid, 'SIGKILL')
      await server.said(new RegExp(`(worker \\d+ is ready[^]*){${times + 1}}`))
      expect(await asked()).to.deep.equal(refused)
    }
    expect((await server.end()).code).to.equal(0)
  })

  it('ends with 1 when no server runs', async () => {
    await using workspace = await makeWorkspace()
    const { code, err } = await workspace.svc(['reload'])
    expect(code).to.equal(1)
    expect(err).to.contain('SERVER_NONE')
  })
})
