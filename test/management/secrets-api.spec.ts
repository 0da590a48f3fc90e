import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { changesOf, type Managed, startManaged, tenTimes } from '../support/admin-caller.ts'
import { runSvc } from '../support/command.ts'
import { inNewHome } from '../support/service.ts'

const SECRETS = '/api/v1/secrets'
const KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const VALUE = 'a-value-that-no-answer-shows'
const CONFIG = `secrets:
  sources:
    from_env: { env: TEST_SECRET }
`

interface Shown {
  readonly name: string
  readonly source: string
  readonly state: string
  readonly changed_at: string | null
  readonly key_id: string | null
}

describe('the management API of secrets', () => {
  let home: string
  let server: Managed & AsyncDisposable
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-secrets-api-'))
    server = await startManaged(home, CONFIG, { SVC_SECRETS_KEY: KEY, TEST_SECRET: 'from-outside' })
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  it('stores a value that nothing shows, lists and removes it', async () => {
    const { admin, service } = server
    const stored = await admin.expect<Shown>(200, 'PUT', `${SECRETS}/weather_key`, { value: VALUE })
    expect(stored).to.include({ name: 'weather_key', source: 'sealed', state: 'ready' })
    const again = await admin.expect<Shown>(200, 'PUT', `${SECRETS}/weather_key`, { value: `${VALUE}2` })
    expect(again.key_id).to.equal(stored.key_id)
    const { secrets } = (await tenTimes(admin, SECRETS)) as { secrets: readonly Shown[] }
    expect(secrets.map(({ name, source, state }) => [name, source, state])).to.deep.equal([
      ['from_env', 'environment', 'ready'],
      ['weather_key', 'sealed', 'ready'],
    ])
    // the command line sees the same
    const listed = await runSvc(['secrets', 'list', '--json'], {
      home,
      env: { SVC_SECRETS_KEY: KEY, TEST_SECRET: 'from-outside' },
    })
    expect((JSON.parse(listed.out) as { secrets: Shown[] }).secrets.map(({ name }) => name)).to.deep.equal([
      'from_env',
      'weather_key',
    ])
    await admin.expect(200, 'DELETE', `${SECRETS}/weather_key`)
    await admin.refused(404, 'INVALID_VALUE', 'DELETE', `${SECRETS}/weather_key`)
    const changes = await changesOf(server, 'secrets/weather_key', 3)
    expect(changes.map(({ change }) => change)).to.have.members(['secret_set', 'secret_set', 'secret_removed'])
    expect(`${service.output()}${JSON.stringify(secrets)}`)
      .to.not.include(VALUE)
      .and.not.include('from-outside')
  })

  it('seals all secrets again', async () => {
    const { admin } = server
    await admin.expect(200, 'PUT', `${SECRETS}/kept`, { value: VALUE })
    const { key_id: keyId } = await admin.expect<{ key_id: string; resealed: number }>(200, 'POST', `${SECRETS}/reseal`)
    expect(keyId).to.be.a('string')
    await admin.expect(200, 'DELETE', `${SECRETS}/kept`)
  })

  it('requires the scope admin', async () => {
    for (const caller of [server.reader, server.unfit]) {
      await caller.refused(403, 'FORBIDDEN', 'GET', SECRETS)
      await caller.refused(403, 'FORBIDDEN', 'PUT', `${SECRETS}/a`, { value: VALUE })
      await caller.refused(403, 'FORBIDDEN', 'DELETE', `${SECRETS}/a`)
      await caller.refused(403, 'FORBIDDEN', 'POST', `${SECRETS}/reseal`)
    }
  })

  const bad: Readonly<Record<string, readonly [status: number, code: string, method: string, path: string, body?: unknown]>> = {
    'a value that is no text': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/a`, { value: 7 }],
    'no value': [400, 'MISSING_FIELD', 'PUT', `${SECRETS}/a`, {}],
    'an empty value': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/a`, { value: '' }],
    'a value of 65,537 characters': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/a`, { value: 'v'.repeat(65_537) }],
    'a value of more than 65,536 bytes': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/a`, { value: 'é'.repeat(60_000) }],
    'half a surrogate pair': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/a`, { value: 'abc\ud800' }],
    'a field that is none': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/a`, { value: VALUE, file: '/etc/passwd' }],
    'a name that is none': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/a%2Fb`, { value: VALUE }],
    'a name of the prototype': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/__proto__`, { value: VALUE }],
    'a name of 65 characters': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/${'a'.repeat(65)}`, { value: VALUE }],
    'a secret whose source the configuration names': [400, 'INVALID_VALUE', 'PUT', `${SECRETS}/from_env`, { value: VALUE }],
    'the removal of such a secret': [400, 'INVALID_VALUE', 'DELETE', `${SECRETS}/from_env`],
    'a removal of nothing': [404, 'INVALID_VALUE', 'DELETE', `${SECRETS}/nothing`],
    'a parameter that is none': [400, 'INVALID_VALUE', 'GET', `${SECRETS}?show=values`],
  }
  for (const [what, [status, code, method, path, body]] of Object.entries(bad))
    it(`refuses ${what}, and does not repeat the value`, async () => {
      const { text } = await server.admin.refused(status, code, method, path, body)
      expect(text).to.not.include(VALUE)
    })

  it('names the missing key without a path', () =>
    inNewHome(async other => {
      await using keyless = await startManaged(other, 'log: { level: info }\n')
      const answer = await keyless.admin.refused(503, 'UNAVAILABLE', 'PUT', `${SECRETS}/a`, { value: VALUE })
      expect((answer.body as { error: string }).error).to.include('no key')
    }))
})
