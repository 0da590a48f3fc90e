import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { callerOf, changesOf, type Managed, startManaged, tenTimes, until } from '../support/admin-caller.ts'
import { runSvc } from '../support/command.ts'

const TOKENS = '/api/v1/tokens'

interface Shown {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly created_at: string
  readonly expires_at: string
  readonly last_used_at: string | null
}
interface Created {
  readonly token: string
  readonly info: Shown
}

describe('the management API of tokens', () => {
  let home: string
  let server: Managed & AsyncDisposable
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-tokens-api-'))
    server = await startManaged(home, 'log: { level: info }\n')
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const create = (body: object) => server.admin.expect<Created>(201, 'POST', TOKENS, body)
  const all = async () => ((await tenTimes(server.admin, TOKENS)) as { tokens: readonly Shown[] }).tokens

  it('creates a token that works at once on every worker, shows it once, and revokes it', async () => {
    const { url, admin } = server
    const { token, info } = await create({ name: 'dora', scopes: ['read', 'chat'], ttl_s: 3_600 })
    expect(token).to.match(/^svc_[A-Za-z0-9_-]{43}$/)
    expect(info).to.deep.include({ name: 'dora', scopes: ['chat', 'read'], last_used_at: null })
    expect(Date.parse(info.expires_at) - Date.parse(info.created_at)).to.equal(3_600_000)
    const dora = callerOf(url, token)
    for (let at = 0; at < 4; at++) expect((await dora.send('GET', '/api/v1/status')).status).to.equal(200)
    await until('the last use is stored', async () =>
      (await all()).some(({ id, last_used_at }) => id === info.id && last_used_at !== null)
    )
    expect(JSON.stringify(await all())).to.not.include(token)
    // the command line has the same
    const listed = JSON.parse((await runSvc(['tokens', 'list', '--json'], { home, share: true })).out) as {
      tokens: { id: string }[]
    }
    expect(listed.tokens.map(({ id }) => id)).to.have.members((await all()).map(({ id }) => id))
    const { revoked } = await admin.expect<{ revoked: readonly Shown[] }>(200, 'DELETE', `${TOKENS}/${info.id}`)
    expect(revoked.map(({ id }) => id)).to.deep.equal([info.id])
    for (let at = 0; at < 4; at++) await dora.refused(401, 'AUTHENTICATION_FAILED', 'GET', '/api/v1/status')
    await admin.refused(404, 'INVALID_VALUE', 'DELETE', `${TOKENS}/${info.id}`)
    const changes = await changesOf(server, `tokens/${info.id}`, 2)
    expect(changes.map(({ change, principal }) => [change, principal])).to.have.deep.members([
      ['token_created', 'api-key'],
      ['token_revoked', 'api-key'],
    ])
    expect(server.service.output()).to.not.include(token)
  })

  it('revokes all tokens of a name', async () => {
    await create({ name: 'eve' })
    await create({ name: 'eve' })
    expect((await server.admin.expect<{ revoked: readonly Shown[] }>(200, 'DELETE', `${TOKENS}/eve`)).revoked).to.have.length(2)
  })

  it('creates a token with all scopes of its creator except admin by default', async () => {
    expect((await create({})).info.scopes).to.deep.equal(['chat', 'read', 'workflows', 'tools'])
  })

  it('gives no token a scope that its creator lacks', async () => {
    const { token } = await create({ name: 'only-admin', scopes: ['admin', 'read'] })
    const caller = callerOf(server.url, token)
    const answer = await caller.refused(403, 'FORBIDDEN', 'POST', TOKENS, { scopes: ['read', 'chat'] })
    expect((answer.body as { details: object }).details).to.include({ scope: 'chat' })
    const { info } = await caller.expect<Created>(201, 'POST', TOKENS, { name: 'child', scopes: ['read'] })
    expect(info.scopes).to.deep.equal(['read'])
    expect((await caller.expect<Created>(201, 'POST', TOKENS, {})).info.scopes).to.deep.equal(['read'])
  })

  it('shows a token with the scope read its own name only', async () => {
    const { tokens } = await server.reader.expect<{ tokens: readonly Shown[] }>(200, 'GET', TOKENS)
    expect(tokens.map(({ name }) => name)).to.deep.equal(['anna'])
  })

  it('requires the scopes', async () => {
    const { reader, unfit } = server
    await unfit.refused(403, 'FORBIDDEN', 'GET', TOKENS)
    for (const caller of [reader, unfit]) {
      await caller.refused(403, 'FORBIDDEN', 'POST', TOKENS, { scopes: ['read'] })
      await caller.refused(403, 'FORBIDDEN', 'DELETE', `${TOKENS}/bert`)
    }
  })

  const bad: Readonly<Record<string, readonly [status: number, code: string, method: string, path: string, body?: unknown]>> = {
    'a scope that is none': [400, 'INVALID_VALUE', 'POST', TOKENS, { scopes: ['*'] }],
    'no scope': [400, 'INVALID_VALUE', 'POST', TOKENS, { scopes: [] }],
    'scopes as text': [400, 'INVALID_VALUE', 'POST', TOKENS, { scopes: 'read' }],
    '10^5 scopes': [400, 'INVALID_VALUE', 'POST', TOKENS, { scopes: Array.from({ length: 90_000 }, () => 'read') }],
    'a lifetime of zero': [400, 'INVALID_VALUE', 'POST', TOKENS, { ttl_s: 0 }],
    'a lifetime of a century': [400, 'INVALID_VALUE', 'POST', TOKENS, { ttl_s: 3_153_600_000 }],
    'a lifetime that is no integer': [400, 'INVALID_VALUE', 'POST', TOKENS, { ttl_s: 1.5 }],
    'a name that looks like an id': [400, 'INVALID_VALUE', 'POST', TOKENS, { name: 'tok_123456789abc' }],
    'a name with a line break': [400, 'INVALID_VALUE', 'POST', TOKENS, { name: 'a\nb' }],
    'a name of 65 characters': [400, 'INVALID_VALUE', 'POST', TOKENS, { name: 'a'.repeat(65) }],
    'a chosen text': [400, 'INVALID_VALUE', 'POST', TOKENS, { token: 'svc_chosen' }],
    'a revocation of nothing': [404, 'INVALID_VALUE', 'DELETE', `${TOKENS}/nobody-here`],
    'a parameter that is none': [400, 'INVALID_VALUE', 'GET', `${TOKENS}?name=anna`],
  }
  for (const [what, [status, code, method, path, body]] of Object.entries(bad))
    it(`refuses ${what}`, () => server.admin.refused(status, code, method, path, body))

  it('does not repeat a token that is passed as its id', async () => {
    const answer = await server.admin.refused(404, 'INVALID_VALUE', 'DELETE', `${TOKENS}/${server.token}`)
    expect(answer.text).to.not.include(server.token.slice(0, 20))
  })
})
