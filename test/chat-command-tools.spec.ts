import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { sideBySide } from './support/side-by-side.ts'
import { configureFew } from './support/tides.ts'
import { makeWorkspace } from '../cli/test/support/svc.ts'

const CAREFUL = fileURLToPath(new URL('fixtures/careful', import.meta.url))
const NOTE = '/tool careful_note {"text": "x"}'

interface Event {
  readonly type: string
  readonly success?: boolean
  readonly error?: string
  readonly error_code?: string
}
const eventsOf = (out: string) =>
  out
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Event)

async function carefulPlace() {
  const workspace = await makeWorkspace()
  await configureFew(workspace.folder, { plugins: [CAREFUL] }, ['tools-time'])
  return workspace
}

describe('svc chat without a terminal to ask questions', () => {
  it('denies a tool that asks, and reports the reason, with and without a server', async () => {
    await using workspace = await carefulPlace()
    const server = await workspace.serve()
    for (const way of [['--local'], []]) {
      const { code, out, err } = await workspace.svc(['chat', ...way, NOTE])
      expect(code).to.equal(0)
      expect(err).to.match(
        /^→ careful_note \{"text":"x"\}\n✗ careful_note [\d.]+ ms: Not allowed: .*this turn has no interactive reader/
      )
      expect(out).to.not.contain('noted')
      const result = await workspace.svc(['chat', '--json', ...way], { input: NOTE })
      expect(result.code, result.err).to.equal(0)
      const events = eventsOf(result.out)
      expect(events.map(event => event.type))
        .to.include('tool_result')
        .and.not.include('ask')
      expect(events.find(event => event.type === 'tool_result')?.success).to.equal(false)
    }
    await server.end()
  })
})

describe('svc chat --tools', () => {
  const it = sideBySide()
  it('has only the tools that it names, none where it names none', async () => {
    await using workspace = await makeWorkspace()
    const call = '/tool current_time {"time_zone": "UTC"}'
    expect((await workspace.svc(['chat', '--tools', 'convert_time,current_time', call])).err).to.contain('✓ current_time')
    for (const tools of ['convert_time', '']) expect((await workspace.svc(['chat', '--tools', tools, call])).err).to.equal('')
    const unknown = await workspace.svc(['chat', '--tools', 'nope', 'hi'])
    expect(unknown.code).to.equal(1)
    expect(unknown.err).to.match(/^INVALID_VALUE\n/)
  })
})

describe('svc chat --json', () => {
  const it = sideBySide()
  it('prints an error record for a failure before the turn, and exits with 1', async () => {
    await using workspace = await makeWorkspace()
    const { code, out, err } = await workspace.svc(['chat', '--json', '--port', '1', 'hi'])
    expect([code, err]).to.deep.equal([1, ''])
    const [event, ...more] = eventsOf(out)
    expect(more).to.deep.equal([])
    expect(event).to.include({ type: 'error', error_code: 'SERVER_UNREACHABLE' })
    const missing = await workspace.svc(['chat', '--json', '--config', 'missing.yaml', 'hi'])
    expect([missing.code, missing.err]).to.deep.equal([1, ''])
    expect(eventsOf(missing.out)[0]).to.include({ type: 'error', error_code: 'CONFIG_UNREADABLE' })
    await workspace.write('svc.config.yaml', 'chat: { nope: 1 }')
    const broken = await workspace.svc(['chat', '--json', 'hi'])
    expect(broken.code).to.equal(1)
    expect(eventsOf(broken.out)[0]).to.include({ type: 'error' })
  })
})

describe('a credential without the scope', () => {
  const it = sideBySide()
  it('names the scope that it lacks', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.yaml', 'server: { auth: { enabled: true } }')
    const made = await workspace.svc(['tokens', 'create', '--name', 'talker', '--scope', 'chat'])
    const token = /svc_[\w-]+/.exec(made.out)?.[0] ?? ''
    const server = await workspace.serve([], { env: { SVC_API_KEY: 'an-api-key-of-a-test' } })
    const { code, err } = await workspace.svc(['tools', 'list'], { env: { SVC_API_KEY: token } })
    expect(code).to.equal(1)
    expect(err).to.match(/^FORBIDDEN\n.*\n {2}Set SVC_API_KEY to a credential with the scope "read"\n/)
    expect((await workspace.svc(['tools', 'list'], { env: { SVC_API_KEY: 'wrong' } })).err).to.match(/^AUTHENTICATION_FAILED\n/)
    const all = await workspace.svc(['tools', 'list'], { env: { SVC_API_KEY: 'an-api-key-of-a-test' } })
    expect(all.code).to.equal(0)
    await server.end()
  })
})
