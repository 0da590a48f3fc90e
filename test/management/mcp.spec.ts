import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { openAuthority } from '../../plugins/mcp/client/test/support/authority.ts'
import { hostileCommand, openHostile } from '../support/hostile.ts'
import { eventsOf, type Managed, type ManagedService, outcomeOf, startManaged } from '../support/management.ts'
import { until } from '../support/wait.ts'

const SERVERS = '/api/v1/mcp/servers'
const DOOR = fileURLToPath(new URL('../support/mcp-door.ts', import.meta.url))
const LIMIT_MS = 60_000

interface Shown {
  readonly name: string
  readonly state: string
  readonly changed: readonly string[]
  readonly tools: readonly string[]
  readonly command: readonly string[] | null
  readonly stderr: string | null
}
interface ShownTools {
  readonly tools: readonly {
    readonly name: string
    readonly status: string
    readonly version: string
    readonly description: string
    readonly difference: string[]
    readonly approved: { readonly description: string } | null
  }[]
}

describe('MCP servers over HTTP', function () {
  this.timeout(180_000)
  let home: string
  beforeEach(async () => void (home = await mkdtemp(join(tmpdir(), 'svc-home-'))))
  afterEach(() => rm(home, { recursive: true, force: true }))
  const fileOf = () => readFile(join(home, 'mcp.yaml'), 'utf8').catch(() => '')
  const server = async (by: Managed, name: string) => (await by.get(`${SERVERS}/${name}`)).body as Shown
  const untilState = (by: Managed, name: string, isRight: (shown: Shown) => boolean) => {
    const end = Date.now() + LIMIT_MS
    return until(
      () => server(by, name),
      shown => {
        if (Date.now() > end) throw new Error(`it never came about: ${JSON.stringify(shown)}`)
        return isRight(shown)
      }
    )
  }
  const open = async (options: Parameters<typeof startManaged>[1] = {}) => {
    const managed = await startManaged(home, options)
    return { managed, admin: await managed.as('admin', 'admin,read'), reader: await managed.as('reader', 'read') }
  }

  describe('that are added by an attacker', () => {
    let managed: ManagedService
    let admin: Managed
    let reader: Managed
    beforeEach(async () => void ({ managed, admin, reader } = await open()))
    afterEach(() => managed[Symbol.asyncDispose]())

    it('never start a program, read another variable or leave the file', async () => {
      const url = 'https://tools.example/mcp'
      const bad: readonly (readonly [string, object | string, number, string?])[] = [
        ['a command', { name: 'a', command: '/bin/sh', args: ['-c', 'touch /tmp/owned'] }, 403, 'command'],
        ['a command beside a URL', { name: 'a', url, command: '/bin/sh' }, 403, 'command'],
        ['arguments', { name: 'a', url, args: ['x'] }, 403, 'args'],
        ['variables', { name: 'a', url, env: { LD_PRELOAD: '/tmp/x.so' } }, 403, 'env'],
        ['an empty command', { name: 'a', url, command: '' }, 403, 'command'],
        ['a variable of svc', { name: 'a', url, api_key_env: 'SVC_API_KEY' }, 403, 'api_key_env'],
        [
          'a foreign secret',
          { name: 'a', url, oauth: { client_id: 'x', client_secret_env: 'AWS_SECRET_ACCESS_KEY' } },
          403,
          'oauth.client_secret_env',
        ],
        ['a command in oauth', { name: 'a', url, oauth: { command: '/bin/sh' } }, 400],
        ['a command in the sandbox', { name: 'a', url, sandbox: true, sandbox_config: { command: '/bin/sh' } }, 400],
        ['paths of the machine', { name: 'a', url, sandbox: true, sandbox_config: { allowed_paths: ['/'] } }, 400],
        ['a file', { name: 'a', url: 'file:///etc/passwd' }, 400, 'url'],
        ['a script', { name: 'a', url: 'javascript:alert(1)' }, 400, 'url'],
        ['credentials', { name: 'a', url: 'https://me:pass@tools.example/' }, 400, 'url'],
        ['no URL', { name: 'a' }, 400],
        ['a path as its name', { name: '../../evil', url }, 400, 'name'],
        ['a line as its name', { name: 'a\n    command: sh', url }, 400, 'name'],
        ['a prototype as its name', { name: '__proto__', url }, 400, 'name'],
        ['an unknown key', { name: 'a', url, cmd: 'sh' }, 400, 'cmd'],
        ['a list as its URL', { name: 'a', url: [url] }, 400, 'url'],
        ['a token URL of a file', { name: 'a', url, oauth: { client_id: 'x', token_url: 'file:///etc/passwd' } }, 400],
        ['too many patterns', { name: 'a', url, allow: Array.from({ length: 1_001 }, () => 'x') }, 400, 'allow'],
      ]
      for (const [what, body, status, field] of bad) {
        const outcome = outcomeOf(await admin.send('POST', SERVERS, body))
        expect(outcome.status, what).to.equal(status)
        if (field !== undefined) expect(outcome.field, what).to.equal(field)
      }
      expect(await fileOf()).to.equal('')
      // a prototype is no way around: the key is dropped or refused, and never a command
      const sneaky = JSON.parse(
        `{"name":"a","url":"${url}","__proto__":{"command":"/bin/sh"},"constructor":{"command":"sh"}}`
      ) as object
      expect(outcomeOf(await admin.send('POST', SERVERS, sneaky)).status).to.equal(400)
      expect(await fileOf()).to.equal('')
    })

    it('cannot write a second key through the text of a URL', async () => {
      const url = 'http://127.0.0.1:9/\n    command: /bin/sh\n    x: "'
      expect(outcomeOf(await admin.send('POST', SERVERS, { name: 'lines', url }))).to.include({ status: 400, field: 'url' })
      expect(await fileOf()).to.equal('')
    })

    it('are written one after the other, and a name once', async () => {
      const url = 'http://127.0.0.1:9/mcp'
      const adding = ['one', 'two', 'one'].map(name => admin.send('POST', SERVERS, { name, url }))
      const statuses = (await Promise.all(adding)).map(({ status }) => status)
      expect(statuses.toSorted((a, b) => a - b)).to.deep.equal([201, 201, 400])
      expect((await fileOf()).match(/name: "(one|two)"$/gm)).to.have.lengthOf(2)
      const removing = ['one', 'two', 'two'].map(name => admin.send('DELETE', `${SERVERS}/${name}`))
      expect((await Promise.all(removing)).map(({ status }) => status).toSorted((a, b) => a - b)).to.deep.equal([200, 200, 404])
    })

    it('are refused without the scope, and unknown names are 404', async () => {
      const body = { name: 'a', url: 'https://tools.example/mcp' }
      const routes: readonly (readonly [string, string, object?])[] = [
        ['POST', '', body],
        ['DELETE', '/a'],
        ['POST', '/a/approve', { tools: [{ name: 't', version: 'v' }] }],
        ['POST', '/a/enable'],
        ['POST', '/a/disable'],
        ['POST', '/a/test', {}],
        ['POST', '/a/login', {}],
        ['POST', '/a/login/answer', { login_id: 'x', address: 'http://127.0.0.1/' }],
      ]
      for (const [method, path, given] of routes) {
        expect(outcomeOf(await reader.send(method, SERVERS + path, given)).status, `${method} ${path}`).to.equal(403)
        if (path !== '')
          expect(outcomeOf(await admin.send(method, SERVERS + path, given)).status, `${method} ${path}`).to.equal(404)
      }
      for (const path of ['/a', '/a/tools', '/__proto__', '/%2e%2e%2fx', '/constructor/tools'])
        expect(outcomeOf(await reader.get(SERVERS + path)).status, path).to.equal(404)
      expect(outcomeOf(await reader.get(`${SERVERS}/a/tools?fresh=1`))).to.include({ status: 400, field: 'fresh' })
      for (const given of [{ tools: 'all' }, { tools: [] }, { tools: ['t'] }, { tools: [{ name: 't' }] }, {}])
        expect(outcomeOf(await admin.send('POST', `${SERVERS}/a/approve`, given)).status).to.equal(400)
      for (const given of [{ tool: 7 }, { arguments: [] }, { steps: 1 }])
        expect(outcomeOf(await admin.send('POST', `${SERVERS}/a/test`, given)).status).to.equal(400)
      expect(outcomeOf(await admin.send('POST', `${SERVERS}/a/login`, { port: 0 })).status).to.equal(400)
    })
  })

  it('are added, tested, approved as shown, switched and removed, the same at each worker', async () => {
    await using hostile = await openHostile({ fickle: true })
    const { managed, admin, reader } = await open({ workers: 2, config: { plugins: [DOOR] } })
    await using _managed = managed
    const added = await admin.send('POST', SERVERS, { name: 'one', url: `${hostile.url}?key=abc123` })
    expect(added.status, added.text).to.equal(201)
    expect(added.body).to.deep.equal({ server: 'one', applied: true, problems: [], hint: null })
    expect(outcomeOf(await admin.send('POST', SERVERS, { name: 'one', url: hostile.url }))).to.include({ status: 400 })
    await untilState(reader, 'one', ({ state }) => state === 'connected' || state === 'degraded')
    const tested = eventsOf(await admin.send('POST', `${SERVERS}/one/test`, { tool: 'echo', arguments: { text: 'x' } }))
    expect(tested.map(event => event.step ?? event.type)).to.deep.equal([
      'resolve',
      'connect',
      'auth',
      'handshake',
      'list',
      'call',
      'end',
    ])
    expect(tested.at(-1)).to.include({ ok: true })
    // each listing has another description of echo
    const listing = async () => (await reader.get(`${SERVERS}/one/tools?fresh=true`)).body as ShownTools
    await listing()
    const changedTool = async () => (await listing()).tools.find(({ status }) => status === 'changed')
    const first = (await until(changedTool, tool => tool !== undefined))!
    expect(first.difference.join(' ')).to.include('→')
    // the words that were approved, beside those of now
    expect(first.approved?.description).to.be.a('string').and.not.equal(first.description)
    expect((await listing()).tools.find(({ status }) => status === 'good')?.approved).to.equal(null)
    await untilState(reader, 'one', ({ changed }) => changed.includes('echo'))
    const stale = { tools: [{ name: 'echo', version: first.version }] }
    await until(changedTool, tool => tool !== undefined && tool.version !== first.version)
    const stored = async () =>
      ((await reader.get(`${SERVERS}/one/tools`)).body as ShownTools).tools.find(({ name }) => name === 'echo')!
    await until(stored, tool => tool.version !== first.version)
    expect(outcomeOf(await admin.send('POST', `${SERVERS}/one/approve`, stale))).to.include({
      status: 412,
      code: 'PRECONDITION_FAILED',
    })
    const unknown = { tools: [{ name: 'nothing', version: first.version }] }
    expect(outcomeOf(await admin.send('POST', `${SERVERS}/one/approve`, unknown)).status).to.equal(404)
    const approve = async () => {
      const { name, version } = await stored()
      return admin.send('POST', `${SERVERS}/one/approve`, { tools: [{ name, version }] })
    }
    const approved = await until(approve, ({ status }) => status !== 412)
    expect(approved.status, approved.text).to.equal(200)
    expect((await admin.send('POST', `${SERVERS}/one/disable`)).body).to.include({ state: 'disabled' })
    const ten = async () => Promise.all(Array.from({ length: 10 }, () => reader.get(`${SERVERS}/one`)))
    await until(ten, answers => answers.every(({ body }) => (body as Shown).state === 'disabled'))
    // the connection is closed a moment after the server is disabled
    const lists = await until(
      () => Promise.all(Array.from({ length: 10 }, () => reader.get(SERVERS))),
      answers => new Set(answers.map(({ text }) => text)).size === 1
    )
    expect(lists[0]!.text).to.not.include('abc123').and.not.include(home)
    expect((await admin.send('POST', `${SERVERS}/one/enable`)).status).to.equal(200)
    await untilState(reader, 'one', ({ state }) => state !== 'disabled')
    const removed = await admin.send('DELETE', `${SERVERS}/one`)
    expect(removed.body, removed.text).to.deep.include({ server: 'one', applied: true })
    expect(await fileOf()).to.not.include('one')
    await until(
      () => reader.get(`${SERVERS}/one`),
      ({ status }) => status === 404
    )
  })

  it('of the configuration cannot be removed, and local programs need mcp.allow_stdio_over_http', async () => {
    const local = hostileCommand({ flood: 'stderr' })
    const config = { mcp: { allow_stdio_over_http: true, clients: [{ name: 'fixed', ...hostileCommand() }] } }
    const { managed, admin, reader } = await open({ config })
    await using _managed = managed
    const added = await admin.send('POST', SERVERS, { name: 'local', ...local })
    expect(added.status, added.text).to.equal(201)
    const shown = await untilState(admin, 'local', ({ state, stderr }) => state === 'connected' && stderr !== null)
    expect(shown.command?.[0]).to.equal(local.command)
    const other = await server(reader, 'local')
    expect([other.command, other.stderr]).to.deep.equal([null, null])
    expect(outcomeOf(await admin.send('DELETE', `${SERVERS}/fixed`))).to.include({ status: 400, field: 'server' })
    const tested = eventsOf(await admin.send('POST', `${SERVERS}/fixed/test`, { tool: 'nothing' }))
    expect(tested.at(-1)).to.deep.equal({ type: 'end', server: 'fixed', ok: false })
    expect(outcomeOf(await admin.send('POST', `${SERVERS}/local/login`, {}))).to.include({ status: 400, field: 'server' })
    expect((await admin.send('DELETE', `${SERVERS}/local`)).status).to.equal(200)
  })

  it('are logged in to with a browser here, or with the address that a browser elsewhere shows', async () => {
    await using authority = await openAuthority()
    const { managed, admin } = await open({ workers: 2 })
    await using _managed = managed
    const oauth = { issuer: authority.issuer }
    expect((await admin.send('POST', SERVERS, { name: 'guarded', url: authority.remote.url, oauth })).status).to.equal(201)
    await untilState(admin, 'guarded', ({ state }) => state === 'needs_auth')
    const stream = await admin.stream('POST', `${SERVERS}/guarded/login`, {})
    const page = (await stream.until('page')).at(-1)!.data as { login_id: string; url: string; redirect: string }
    expect(page.redirect).to.match(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
    const answer = (address: string, by = admin) =>
      by.send('POST', `${SERVERS}/guarded/login/answer`, { login_id: page.login_id, address })
    const wrong = await answer(`${page.redirect}?code=x&state=other`)
    expect(outcomeOf(wrong)).to.include({ status: 400, field: 'address' })
    const { headers } = await fetch(page.url, { redirect: 'manual' })
    const address = headers.get('location')!
    const stranger = await managed.as('stranger', 'admin')
    expect(outcomeOf(await answer(address, stranger)).status).to.equal(404)
    // ten connections: the answer comes to both workers
    const taken = await answer(address)
    expect(taken.status, taken.text).to.equal(200)
    expect(eventsOf(await stream.rest()).map(({ type }) => type)).to.deep.equal(['page', 'done'])
    await untilState(admin, 'guarded', ({ state }) => state === 'connected')
    expect(outcomeOf(await answer(address)).status, 'twice').to.equal(404)
    authority.revoke()
    const again = await admin.stream('POST', `${SERVERS}/guarded/login`, {})
    const second = (await again.until('page')).at(-1)!.data as { url: string }
    await fetch(second.url)
    expect(eventsOf(await again.rest()).at(-1)).to.deep.equal({ type: 'done', server: 'guarded' })
    expect(authority.grants.filter(grant => grant === 'authorization_code')).to.have.lengthOf(2)
  })
})
