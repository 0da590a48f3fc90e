import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { sideBySide } from './support/side-by-side.ts'
import { makeWorkspace } from '../cli/test/support/svc.ts'

const SICK = fileURLToPath(new URL('fixtures/sick', import.meta.url))

/** A place with the local provider and one that answers nothing. */
async function sickPlace() {
  const workspace = await makeWorkspace()
  await workspace.write('svc.config.json', JSON.stringify({ plugins: [SICK], providers: { local: {}, sick: {} } }))
  return workspace
}

interface Provider {
  readonly name: string
  readonly healthy: boolean
  readonly error?: string
  readonly models: readonly string[]
  readonly probe_ms?: number
  readonly chat?: { success: boolean; model?: string; first_token_ms?: number; duration_ms?: number; error?: string }
}
const providersOf = (out: string) => (JSON.parse(out) as { providers: Provider[] }).providers

describe('svc providers list', () => {
  const it = sideBySide()
  it('shows models, features and state of each provider, with and without a server', async () => {
    await using workspace = await sickPlace()
    const server = await workspace.serve()
    for (const way of [['--local'], []]) {
      const { code, out } = await workspace.svc(['providers', 'list', ...way])
      expect(code).to.equal(0)
      expect(out).to.match(/^local +healthy +tool_calling, streaming, vision +local-1, local-small$/m)
      expect(out)
        .to.match(/^sick +unhealthy +sick-1, sick-2, sick-3, 2 more$/m)
        .and.match(/^sick: the line is dead$/m)
      const all = providersOf((await workspace.svc(['providers', 'list', ...way, '--json'])).out)
      expect(all.map(({ name, healthy, models }) => [name, healthy, models.length])).to.deep.equal([
        ['local', true, 2],
        ['sick', false, 5],
      ])
    }
    const status = await workspace.svc(['status'])
    expect(status.out).to.match(/^checks .*providers degraded[^\n]*\n +providers: not reachable: sick$/m)
    await server.end()
  })
})

describe('svc providers', () => {
  const it = sideBySide()
  it('prints the name of a provider once before its error, even if the error begins with the name', async () => {
    await using workspace = await makeWorkspace()
    const down = { type: 'openai', preset: 'compatible', base_url: 'http://127.0.0.1:1/v1', models: ['m'] }
    await workspace.write('svc.config.json', JSON.stringify({ providers: { down } }))
    for (const command of ['list', 'test']) {
      const { out } = await workspace.svc(['providers', command])
      expect(out).to.match(/^down: (?!down:)\S/m)
    }
  })
})

describe('svc providers test', () => {
  const it = sideBySide()
  it('probes, and ends with 1 when one fails', async () => {
    await using workspace = await sickPlace()
    const { code, out } = await workspace.svc(['providers', 'test'])
    expect(code).to.equal(1)
    expect(out)
      .to.match(/^local +answers [\d.]+ ms$/m)
      .and.match(/^sick +fails [\d.]+ ms$/m)
      .and.match(/^sick: the line is dead$/m)
    expect((await workspace.svc(['providers', 'test', 'local'])).code).to.equal(0)
    const unknown = await workspace.svc(['providers', 'test', 'nope'])
    expect([unknown.code, unknown.err]).to.deep.equal([
      2,
      'PROVIDER_UNKNOWN\n  there is no provider "nope"\n  Use one of: local, sick\n',
    ])
  })

  it('sends a short chat with --chat and shows the times, with and without a server; it leaves no conversation', async () => {
    await using workspace = await sickPlace()
    const server = await workspace.serve()
    for (const way of [['--local'], []]) {
      const { code, out } = await workspace.svc(['providers', 'test', '--chat', '--json', ...way])
      expect(code).to.equal(1)
      const [local, sick] = providersOf(out)
      expect(local?.chat).to.deep.include({ success: true, model: 'local-1' })
      expect(local?.chat?.first_token_ms).to.be.above(0).and.at.most(local!.chat!.duration_ms!)
      expect(sick?.chat).to.deep.include({ success: false })
      expect(sick?.chat?.error).to.contain('the line is dead')
      const small = await workspace.svc(['providers', 'test', 'local', '--chat', '--model', 'local-small', ...way])
      expect(small.code).to.equal(0)
      expect(small.out).to.match(/^local +answers.* local-small +/m)
      expect((await workspace.svc(['providers', 'test', 'local', '--chat', '--model', 'nope', ...way])).code).to.equal(1)
    }
    const { conversations } = (await (await fetch(`${server.url}/api/v1/conversations`)).json()) as { conversations: object[] }
    expect(conversations).to.deep.equal([])
    await server.end()
  })

  it('waits no longer than --timeout', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write(
      'svc.config.json',
      JSON.stringify({ plugins: [SICK], providers: { silent: { type: 'sick', silent: true } } })
    )
    const { code, out } = await workspace.svc(['providers', 'test', '--chat', '--timeout', '0.2', '--json'])
    expect(code).to.equal(1)
    expect(providersOf(out)[0]).to.deep.include({ healthy: false, error: 'no answer within 200 ms' })
    expect(providersOf(out)[0]?.chat).to.deep.equal({ success: false, error: 'no reply within 200 ms' })
  })

  it('ends with 130 at Ctrl-C', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write(
      'svc.config.json',
      JSON.stringify({ plugins: [SICK], providers: { silent: { type: 'sick', silent: true, tells: true } } })
    )
    const child = workspace.start(['providers', 'test'])
    await once(child.stderr!, 'data')
    child.kill('SIGINT')
    expect((await once(child, 'exit'))[0]).to.equal(130)
  })

  it('says in its help that --chat is billed', async () => {
    await using workspace = await makeWorkspace()
    expect((await workspace.svc(['providers', 'test', '--help'])).out).to.match(/BILLED/)
  })
})
