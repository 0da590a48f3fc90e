import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { changesOf, type Managed, startManaged, tenTimes } from '../support/admin-caller.ts'
import { inNewHome } from '../support/service.ts'

const [PROFILES, FILE] = ['/api/v1/profiles', '/api/v1/config/profiles']
const FIRST = `# profiles of a person
default: default
profiles:
  default: {}
  # slow and sure
  careful: { temperature: 0.1, system_prompt: Be careful. } # as tested
`

interface Shown {
  readonly name: string
  readonly temperature: number | null
  readonly max_tokens: number | null
  readonly system_prompt: string | null
  readonly tools: readonly string[] | null
  readonly fallback: readonly object[]
}
interface State {
  readonly default: string
  readonly profiles: readonly Shown[]
  readonly version: string
  readonly is_pending: boolean
  readonly locked: string | null
}
interface Checked {
  readonly ok: boolean
  readonly problems: readonly { readonly path: string | null; readonly message: string; readonly hint: string | null }[]
  readonly warnings: readonly string[]
}

describe('the management API of profiles', () => {
  let home: string
  let file: string
  let server: Managed & AsyncDisposable
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-profiles-api-'))
    file = join(home, 'profiles.yaml')
    await writeFile(file, FIRST)
    server = await startManaged(home, 'log: { level: info }\n')
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const read = () => server.admin.expect<State>(200, 'GET', FILE)
  const match = async () => ({ 'if-match': `"${(await read()).version}"` })
  const put = async (name: string, profile: object, headers?: Record<string, string>) =>
    server.admin.send('PUT', `${PROFILES}/${name}`, profile, headers ?? (await match()))

  describe('attacks', () => {
    it('refuses stale, weak and missing versions', async () => {
      const { admin } = server
      const stale = await match()
      await writeFile(file, `${await readFile(file, 'utf8')}# edited\n`)
      await admin.refused(412, 'PRECONDITION_FAILED', 'PUT', `${PROFILES}/a`, {}, stale)
      await admin.refused(412, 'PRECONDITION_FAILED', 'DELETE', `${PROFILES}/careful`, undefined, stale)
      await admin.refused(
        412,
        'PRECONDITION_FAILED',
        'PUT',
        `${PROFILES}/a`,
        {},
        { 'if-match': `W/${(await match())['if-match']}` }
      )
      await admin.refused(400, 'MISSING_FIELD', 'PUT', `${PROFILES}/a`, {})
      await admin.refused(400, 'MISSING_FIELD', 'DELETE', `${PROFILES}/careful`)
      await admin.refused(400, 'INVALID_VALUE', 'PUT', `${PROFILES}/a`, {}, { 'if-match': '"a", "b"' })
    })

    it('lets one of several changes of the same version win', async () => {
      const headers = await match()
      const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => put('raced', { max_tokens: at + 1 }, headers)))
      expect(answers.map(({ status }) => status)).to.have.members([200, ...Array(7).fill(412)])
      expect((await readdir(home)).filter(name => name.startsWith('profiles.yaml.'))).to.deep.equal(['profiles.yaml.lock'])
      await server.admin.expect(200, 'DELETE', `${PROFILES}/raced`, undefined, await match())
    })

    for (const name of [
      '__proto__',
      'constructor',
      'prototype',
      '..%2F..%2Fetc',
      '%2e%2e',
      '.hidden',
      'a%20b',
      'a%00b',
      'a'.repeat(65),
      'a%0Ab',
    ])
      it(`refuses the name ${name.slice(0, 20)}`, async () => {
        const before = await readFile(file, 'utf8')
        const answer = await put(name, { max_tokens: 1 })
        expect(answer.status, answer.text).to.equal(400)
        expect(await readFile(file, 'utf8')).to.equal(before)
        expect((await server.admin.send('DELETE', `${PROFILES}/${name}`, undefined, await match())).status).to.be.oneOf([
          400, 404,
        ])
      })

    const bad: Readonly<Record<string, object>> = {
      'an unknown setting': { command: 'sh' },
      'a temperature of 2': { temperature: 2 },
      'tokens as text': { max_tokens: '7' },
      'no tokens': { max_tokens: 0 },
      'tools as text': { tools: 'read_file' },
      '10^5 tools': { tools: Array(90_000).fill('t') },
      'a prompt of 100,001 characters': { system_prompt: 'p'.repeat(100_001) },
      'a fallback without a model': { fallback: [{ provider: 'local' }] },
      'a fallback with a command': { fallback: [{ provider: 'local', model: 'local-1', command: 'sh' }] },
      'a mode that is none': { mode: 'berserk' },
      'a null': { mode: null },
      'another name': { name: 'other' },
    }
    for (const [what, profile] of Object.entries(bad))
      it(`refuses ${what}`, async () => {
        const before = await readFile(file, 'utf8')
        await server.admin.refused(400, 'INVALID_VALUE', 'PUT', `${PROFILES}/bad`, profile, await match())
        expect(await readFile(file, 'utf8')).to.equal(before)
      })

    it('writes text that looks like YAML as text', async () => {
      const prompt = 'x\n  evil: { tools: [] }\n# - !!js/function "f()"\n*alias &anchor'
      await server.admin.expect(200, 'PUT', `${PROFILES}/tricky`, { system_prompt: prompt, description: '*x' }, await match())
      const { profiles } = await read()
      expect(profiles.find(({ name }) => name === 'tricky')).to.deep.include({ system_prompt: prompt })
      expect(profiles.map(({ name }) => name)).to.not.include('evil')
      await server.admin.expect(200, 'DELETE', `${PROFILES}/tricky`, undefined, await match())
    })

    it('does not follow a link out of the home, and does not change a file that the configuration names', async () => {
      const outside = join(await mkdtemp(join(tmpdir(), 'svc-outside-')), 'profiles.yaml')
      const text = await readFile(file, 'utf8')
      await writeFile(outside, text)
      await unlink(file)
      await symlink(outside, file)
      try {
        expect((await put('linked', {}, { 'if-match': '*' })).status).to.not.equal(200)
        expect(await readFile(outside, 'utf8')).to.equal(text)
      } finally {
        await unlink(file)
        await writeFile(file, text)
      }
      await inNewHome(async other => {
        const named = join(other, 'mine.yaml')
        await writeFile(named, FIRST)
        await using locked = await startManaged(other, `selection: { profiles_file: ${JSON.stringify(named)} }\n`)
        expect((await locked.admin.expect<State>(200, 'GET', FILE)).locked).to.include('selection.profiles_file')
        await locked.admin.refused(400, 'INVALID_VALUE', 'PUT', `${PROFILES}/a`, {}, { 'if-match': '*' })
        expect([await readFile(named, 'utf8'), existsSync(join(other, 'profiles.yaml'))]).to.deep.equal([FIRST, false])
      })
    })

    it('keeps the default, and removes no profile that is not there', async () => {
      const { admin } = server
      await admin.refused(400, 'INVALID_VALUE', 'DELETE', `${PROFILES}/default`, undefined, await match())
      await admin.refused(404, 'INVALID_VALUE', 'DELETE', `${PROFILES}/nothing`, undefined, await match())
    })

    it('requires the scopes', async () => {
      const { reader, unfit } = server
      await unfit.refused(403, 'FORBIDDEN', 'GET', FILE)
      await reader.refused(403, 'FORBIDDEN', 'POST', `${PROFILES}/a/check`, {})
      await reader.refused(403, 'FORBIDDEN', 'PUT', `${PROFILES}/a`, {}, { 'if-match': '*' })
      await reader.refused(403, 'FORBIDDEN', 'DELETE', `${PROFILES}/careful`, undefined, { 'if-match': '*' })
    })
  })

  it('checks a draft with problems and warnings', async () => {
    const check = (profile: object) => server.admin.expect<Checked>(200, 'POST', `${PROFILES}/draft/check`, profile)
    expect(await check({ provider: 'local', mode: 'review' })).to.deep.equal({ ok: true, problems: [], warnings: [] })
    const { ok, warnings } = await check({ provider: 'away', tools: ['read_file', 'no_such_tool'] })
    expect([ok, warnings]).to.deep.equal([
      true,
      ['there is no provider "away" at the moment', 'there is no tool "no_such_tool" at the moment'],
    ])
    const { problems } = await check({ mode: 'berserk' })
    expect(problems[0]).to.deep.include({ path: 'profiles.draft.mode' })
    expect(problems[0]!.hint).to.include('review')
    expect((await read()).profiles.map(({ name }) => name)).to.not.include('draft')
  })

  it('writes and removes profiles, keeps comments, and applies them with the next reload', async () => {
    const { admin } = server
    const body = { max_tokens: 9, tools: ['read_file'], fallback: [{ provider: 'local', model: 'local-small' }] }
    const added = await put('brief', body)
    expect(added.status, added.text).to.equal(200)
    expect(added.body)
      .to.deep.include({ reload_required: true })
      .and.to.have.property('hint')
      .match(/POST \/api\/v1\/reload/)
    expect((await put('careful', { temperature: 0.2 })).status).to.equal(200)
    const text = await readFile(file, 'utf8')
    expect(text).to.include('# profiles of a person').and.include('# slow and sure')
    const state = (await tenTimes(server.reader, FILE)) as State
    expect(state.is_pending).to.equal(true)
    expect(state.profiles.find(({ name }) => name === 'brief')).to.deep.include(body)
    // what the new profile does not have is gone
    expect(state.profiles.find(({ name }) => name === 'careful')).to.deep.include({ temperature: 0.2, system_prompt: null })
    const running = async () =>
      (await admin.expect<{ profiles: { name: string }[] }>(200, 'GET', PROFILES)).profiles.map(({ name }) => name)
    expect(await running()).to.not.include('brief')
    for (const [path, request] of [
      ['/api/v1/profile/switch', { profile: 'brief' }],
      ['/api/v1/chat', { message: 'hi', profile: 'brief' }],
    ] as const) {
      const answer = await admin.refused(400, 'INVALID_VALUE', 'POST', path, request)
      expect((answer.body as { error: string }).error).to.include('waits for the next reload (svc reload')
    }
    const unknown = await admin.refused(400, 'INVALID_VALUE', 'POST', '/api/v1/profile/switch', { profile: 'nowhere' })
    expect((unknown.body as { error: string }).error).to.equal('there is no profile "nowhere"')
    expect(await admin.expect<object>(200, 'POST', '/api/v1/reload')).to.include({ reloaded: true })
    for (let at = 0; at < 4; at++) expect(await running()).to.include('brief')
    expect((await read()).is_pending).to.equal(false)
    await admin.expect(200, 'DELETE', `${PROFILES}/brief`, undefined, await match())
    expect((await read()).profiles.map(({ name }) => name)).to.deep.equal(['default', 'careful'])
    const changes = await changesOf(server, 'profiles/brief', 2)
    expect(changes.map(({ change, principal }) => [change, principal])).to.have.deep.members([
      ['profile_added', 'api-key'],
      ['profile_removed', 'api-key'],
    ])
    expect((await changesOf(server, 'profiles/careful'))[0]!.before).to.deep.include({ temperature: 0.1 })
  })
})
