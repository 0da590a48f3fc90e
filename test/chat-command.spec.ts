import { exec } from 'node:child_process'
import { promisify } from 'node:util'
import { once } from 'node:events'
import { openUpstream } from '@svc/testing'
import { expect } from 'chai'
import { sideBySide } from './support/side-by-side.ts'
import { makeWorkspace } from '../cli/test/support/svc.ts'
import { SVC } from '../cli/test/support/entry.ts'

interface Event {
  readonly type: string
  readonly status?: string
  readonly conversation_id?: string
  readonly content?: string
  readonly error_code?: string
}
const eventsOf = (out: string) =>
  out
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Event)
const replyOf = (events: readonly Event[]) => events.map(event => event.content ?? '').join('')

describe('svc chat without a server', () => {
  const it = sideBySide()
  it('answers one message', async () => {
    await using workspace = await makeWorkspace()
    expect(await workspace.svc(['chat', 'hello there'])).to.include({ code: 0, out: 'You said: hello there\n', err: '' })
  })

  it('takes the message from a pipe', async () => {
    await using workspace = await makeWorkspace()
    expect(await workspace.svc(['chat'], { input: 'from a pipe\n' })).to.include({ code: 0, out: 'You said: from a pipe\n' })
  })

  it('puts what comes through the pipe of a shell below the message', async () => {
    await using workspace = await makeWorkspace()
    const command = `echo 'a long text' | "${process.execPath}" ${SVC.map(word => `"${word}"`).join(' ')} chat 'Sum this up'`
    const { stdout } = await promisify(exec)(command, {
      env: { PATH: process.env.PATH, SVC_HOME: workspace.home },
      cwd: workspace.folder,
    })
    expect(stdout).to.equal('You said: Sum this up\n\na long text\n')
  })

  it('does not wait for a standard input that stays open if a message is given', async () => {
    await using workspace = await makeWorkspace()
    const child = workspace.start(['chat', 'hello'])
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).to.equal(0)
  })

  it('says so when there is no message', async () => {
    await using workspace = await makeWorkspace()
    const { code, err } = await workspace.svc(['chat'])
    expect(code).to.equal(2)
    expect(err).to.match(/^MESSAGE_MISSING/)
  })

  it('shows tool calls beside the reply', async () => {
    await using workspace = await makeWorkspace()
    const { code, out, err } = await workspace.svc(['chat', '/tool current_time {}'])
    expect(code).to.equal(0)
    expect(err).to.match(/^→ current_time \{\}\n✓ current_time [\d.]+ ms\n$/)
    expect(out).to.not.contain('→')
    const failed = await workspace.svc(['chat', '/tool current_time {"time_zone": "nowhere"}'])
    expect(failed.err).to.match(/\n✗ current_time [\d.]+ ms: .*nowhere/)
  })

  it('goes on with a conversation', async () => {
    await using workspace = await makeWorkspace()
    const first = eventsOf((await workspace.svc(['chat', '--json', 'one'])).out)
    const id = first[0]?.conversation_id ?? ''
    const second = eventsOf((await workspace.svc(['chat', '--json', '--conversation', id, 'two'])).out)
    expect(second[0]).to.include({ type: 'start', conversation_id: id })
    const { code, err } = await workspace.svc(['chat', '--conversation', 'conv_unknown', 'three'])
    expect(code).to.equal(1)
    expect(err).to.match(/^INVALID_VALUE\n  conversation_id not found\n/)
  })

  it('lists the available providers or models if the given one is unknown', async () => {
    await using workspace = await makeWorkspace()
    const provider = await workspace.svc(['chat', '--provider', 'nope', 'hi'])
    expect(provider.err).to.equal('PROVIDER_NOT_FOUND\n  there is no provider "nope"\n  Use one of: local\n')
    const model = await workspace.svc(['chat', '--model', 'nope', 'hi'])
    expect(model.err).to.contain('MODEL_NOT_FOUND\n').and.contain('one of: local-1, local-small\n')
  })

  it('ends with 1 when the turn fails, also for programs', async () => {
    await using workspace = await makeWorkspace()
    const text = await workspace.svc(['chat', '/fail overloaded'])
    expect(text.code).to.equal(1)
    expect(text.err).to.match(/^[A-Z_]+\n/)
    const json = await workspace.svc(['chat', '--json', '/fail overloaded'])
    expect(json.code).to.equal(1)
    expect(eventsOf(json.out).some(event => event.type === 'error' && event.error_code !== undefined)).to.equal(true)
  })

  it('takes provider, model, profile and mode, and refuses unknown ones', async () => {
    await using workspace = await makeWorkspace()
    const good = await workspace.svc([
      'chat',
      '--json',
      '--model',
      'local-small',
      '--mode',
      'plan',
      '--profile',
      'default',
      '--max-tokens',
      '50',
      'hi',
    ])
    expect(eventsOf(good.out)[0]).to.include({ provider: 'local', model: 'local-small' })
    for (const args of [
      ['--model', 'nope'],
      ['--provider', 'nope'],
      ['--mode', 'nope'],
      ['--profile', 'nope'],
      ['--temperature', '7'],
    ])
      expect((await workspace.svc(['chat', ...args, 'hi'])).code, args.join(' ')).to.equal(1)
    expect((await workspace.svc(['chat', '--temperature', 'warm', 'hi'])).code).to.equal(2)
    expect((await workspace.svc(['chat', '--mode', 'plan', '--url', 'http://127.0.0.1:1', 'hi'])).code).to.equal(2)
  })

  it('aborts the turn at Ctrl-C and ends with 130', async () => {
    await using workspace = await makeWorkspace()
    const child = workspace.start(['chat', '/pace 200\none two three four five six seven eight nine ten'])
    await once(child.stdout!, 'data')
    child.kill('SIGINT')
    expect((await once(child, 'exit'))[0]).to.equal(130)
  })
})

describe('svc chat, with a server and without', () => {
  const it = sideBySide()
  /** Takes out what no two turns have in common. */
  const common = ({
    // only a server can continue a turn
    turn_id: _turn,
    timestamp: _at,
    request_id: _request,
    conversation_id: _id,
    duration_ms: _ms,
    ...rest
  }: Record<string, unknown>) => rest
  const asks: [string, string[]][] = [
    ['tool calls', ['/tool current_time {"timezone": "nowhere"}']],
    ['a provider that fails before its answer', ['/fail overloaded']],
    ['a provider that fails within its answer', ['one two three\n/fail network after 2']],
    ['a message that is too long for the model', ['/fail context_too_long']],
    ['an unknown conversation', ['--conversation', 'conv_nope', 'hi']],
  ]

  it('reports events and errors in the same format', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    for (const [what, args] of asks) {
      const [local, remote] = await Promise.all(
        [['--local'], ['--url', server.url]].map(async way => {
          const { code, out } = await workspace.svc(['chat', '--json', ...way, ...args])
          return { code, events: eventsOf(out).map(event => common({ ...event })) }
        })
      )
      expect(local, what).to.deep.equal(remote)
    }
    await server.end()
  })
})

describe('svc chat with a server', () => {
  const it = sideBySide()
  it('finds the one that runs, and keeps its conversation there', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const { code, out } = await workspace.svc(['chat', '--json', 'hello there'])
    expect(code).to.equal(0)
    const events = eventsOf(out)
    expect([events[0]?.type, events.at(-1)?.type, events.at(-1)?.status]).to.deep.equal(['start', 'end', 'completed'])
    expect(replyOf(events)).to.equal('You said: hello there')
    const kept = await fetch(`${server.url}/api/v1/conversations/${events[0]?.conversation_id}`)
    expect(kept.status).to.equal(200)
    const { port } = new URL(server.url)
    expect((await workspace.svc(['chat', '--port', port, 'hi'])).out).to.equal('You said: hi\n')
    await server.end()
  })

  it('reports the error record of a server that rejects the request', async () => {
    await using workspace = await makeWorkspace()
    const server = await workspace.serve()
    const { code, err } = await workspace.svc(['chat', '--url', server.url, '--model', 'nope', 'hi'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^MODEL_NOT_FOUND/)
      .and.contain('one of: local-1, local-small')
    await server.end()
  })

  it('says when no server answers at --url or --port', async () => {
    await using workspace = await makeWorkspace()
    for (const args of [
      ['--url', 'http://127.0.0.1:1'],
      ['--port', '1'],
    ]) {
      const { code, err } = await workspace.svc(['chat', ...args, 'hi'])
      expect(code).to.equal(1)
      expect(err).to.match(/^SERVER_UNREACHABLE/)
    }
  })

  it('does not follow a redirect with its credential, and reports the target', async () => {
    await using workspace = await makeWorkspace()
    await using elsewhere = await openUpstream((_, reply) => reply.json(200, {}))
    await using server = await openUpstream((_, reply) => reply.redirect(307, `${elsewhere.url}/api/v1/chat/stream`))
    const env = { SVC_API_KEY: 'a-secret-key-of-32-characters-00' }
    const { code, err } = await workspace.svc(['chat', '--url', server.url, 'hi'], { env })
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^SERVER_REDIRECTS/)
      .and.contain(`--url ${elsewhere.url}\n`)
    expect([server.received.length, elsewhere.received]).to.deep.equal([1, []])
  })

  it('asks which when several run', async () => {
    await using workspace = await makeWorkspace()
    const servers = [await workspace.serve(), await workspace.serve()]
    const { code, err } = await workspace.svc(['chat', 'hi'])
    expect(code).to.equal(1)
    expect(err)
      .to.match(/^SERVER_AMBIGUOUS/)
      .and.contain('--port')
    await Promise.all(servers.map(server => server.end()))
  })
})
