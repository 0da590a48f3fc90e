import { execFile } from 'node:child_process'
import { createHash, createHmac, randomUUID } from 'node:crypto'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { FakeUpstream } from '@svc/testing'
import { expect } from 'chai'
import { type Client, createClient, type Request } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { type Service, startService } from '../support/service.ts'

const run = promisify(execFile)
const EXAMPLES = fileURLToPath(new URL('../../examples/plugins/', import.meta.url))
const NAMES = ['signed', 'hooks-in', 'llama'] as const
const MANY = Array.from({ length: 100 }, (_, n) => n)
const SECRET = 'the-secret-of-this-test-and-of-no-other'
const ENV = { SIGNED_SECRET_CI: SECRET, GITHUB_WEBHOOK_SECRET: SECRET, STRIPE_WEBHOOK_SECRET: SECRET }

const hmac = (...parts: readonly string[]) => createHmac('sha256', SECRET).update(parts.join('')).digest('hex')

/** A request with a signature, as a client of the scheme sends it. */
function signed(method: string, target: string, raw = ''): Request {
  const [path, query = ''] = target.split('?')
  const [time, nonce] = [String(Math.floor(Date.now() / 1000)), randomUUID()]
  const digest = createHash('sha256').update(raw).digest('hex')
  const signature = hmac([time, nonce, method, path, query, digest].join('\n'))
  const headers = { 'x-signed-key': 'ci', 'x-signed-time': time, 'x-signed-nonce': nonce, 'x-signed-signature': signature }
  return { method, path: target, headers, ...(raw && { raw }) }
}
const chat = (model: string, message = 'Hello', path = '/api/v1/chat') =>
  signed('POST', path, JSON.stringify({ provider: 'mine', model, message, tools: [] }))

const github = (id: string, raw: string): Request => ({
  method: 'POST',
  path: '/hooks/github',
  headers: { 'x-hub-signature-256': `sha256=${hmac(raw)}`, 'x-github-delivery': id, 'x-github-event': 'push' },
  raw,
})
const stripe = (id: string, time = Math.floor(Date.now() / 1000)): Request => {
  const raw = `{ "id": "${id}", "type": "invoice.paid", "amount": 1.0 }`
  return { method: 'POST', path: '/hooks/stripe', headers: { 'stripe-signature': `t=${time},v1=${hmac(`${time}.`, raw)}` }, raw }
}

/** The life of three plugins in one server, each as a packed package in a process of its own. */
describeWith('bubblewrap', 'examples/plugins/signed, hooks-in and llama, installed', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let folder: string
  let home: string
  let upstream: FakeUpstream
  let service: Service
  let client: Client
  let building: Promise<unknown>
  const done = async (...args: string[]) => {
    const { code, out, err } = await runSvc(args, { home, cwd: folder, env: ENV })
    expect(code, `${out}\n${err}`).to.equal(0)
    return out
  }
  const serve = async (options: object = {}) => {
    service = await startService({ home, cwd: folder, env: ENV, ...options })
    client = createClient(service.url)
  }
  const statuses = async (requests: readonly Request[]) =>
    (await Promise.all(requests.map(request => client.send(request)))).map(({ status }) => status)
  const events = async (query = '?limit=100') =>
    ((await client.send(signed('GET', `/hooks/events${query}`))).body as { events: { event: string; body: object }[] }).events
  const configure = (file: string, url: string) => {
    const config = {
      server: { auth: { enabled: true, signed: { keys: { ci: ['chat', 'read'] } } } },
      providers: { mine: { type: 'llama', base_url: url } },
      plugins: [{ use: '@svc/plugin-auth-api-key', enabled: false }],
    }
    return writeFile(join(folder, file), JSON.stringify(config))
  }
  /** `npm pack` of a copy of the example, with another version and other code where that is given. */
  const pack = async (name: string, version: string, change = (code: string) => code) => {
    const copy = join(folder, `${name}-${version}`)
    await cp(join(EXAMPLES, name), copy, { recursive: true })
    for (const file of ['package.json', 'index.js', 'protocol.js', 'scheme.js'].map(item => join(copy, item))) {
      const code = await readFile(file, 'utf8').catch(() => '')
      if (code !== '') await writeFile(file, change(code).replace('"version": "1.0.0"', `"version": "${version}"`))
    }
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: copy })
    return join(folder, (JSON.parse(stdout) as { filename: string }[])[0]!.filename)
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-three-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    home = join(folder, 'home')
    const { startServer } = (await import(`${EXAMPLES}llama/test/server.js`)) as { startServer(): Promise<FakeUpstream> }
    upstream = stack.use(await startServer())
    await configure('svc.config.json', upstream.url)
    const files = await Promise.all(NAMES.map(name => pack(name, '1.0.0')))
    const out = await done('plugins', 'install', ...files, '--yes')
    expect(out.match(/runs {6}in its own process/g)).to.have.length(3)
    expect(out).to.contain(`connect to ${new URL(upstream.url).host} (providers[].base_url)`)
    expect(out).to.contain('SIGNED_SECRET_*').and.contain('POST /hooks/github')
    ;[building] = [done('build', join(folder, 'built')), await serve()]
  })
  after(async () => {
    client?.close()
    await service?.[Symbol.asyncDispose]()
    await stack.disposeAsync()
  })

  it('pass their own tests, and have no errors in lint', async () => {
    const test = (name: string) => run(process.execPath, ['--conditions=svc-source', '--test'], { cwd: join(EXAMPLES, name) })
    const lint = async (name: string) => expect(await done('plugins', 'lint', join(EXAMPLES, name))).to.not.contain('error ')
    await Promise.all(NAMES.flatMap(name => [test(name), lint(name)]))
  })

  it('signed and llama: 100 signed chats at once, and none of them twice', async () => {
    const requests = MANY.map(n => chat('plain', `Hello ${n}`, n % 2 ? '/api/v1/chat' : '/api/v1/chat/stream'))
    const answers = await Promise.all(requests.map(request => client.send(request)))
    for (const [n, { status, body, text, events: pieces }] of answers.entries()) {
      expect(status, text).to.equal(200)
      if (n % 2 === 0) {
        expect(pieces.map(({ event }) => event)).to.include('end')
        expect(text).to.contain('Hello, ')
        continue
      }
      expect(body).to.deep.include({ response: 'Hello, you', provider: 'mine' })
      expect((body as { tokens_used: object }).tokens_used).to.deep.include({ input: 3, output: 2 })
    }
    // the server slows down a client with many invalid credentials
    expect(await statuses(requests.slice(0, 5))).to.deep.equal([401, 401, 401, 401, 401])
    const request = chat('plain')
    expect(await statuses([{ ...request, raw: `${String(request.raw)} ` }])).to.deep.equal([401])
    expect(await statuses([request])).to.deep.equal([200])
  })

  it('llama: reports an error inside a stream, and an unknown model', async () => {
    const [inside, unknown] = await Promise.all(['error_inside', 'none'].map(model => client.send(chat(model))))
    expect(inside!.body).to.deep.include({ error_code: 'PROVIDER_ERROR' })
    expect(inside!.text).to.contain('out of memory')
    expect(unknown!.text).to.contain('not found')
    const { text } = await client.send(signed('GET', '/api/v1/providers'))
    expect(text).to.contain('"error_inside"')
  })

  it('llama: connects to no other server of the configuration until a person has accepted it', async () => {
    await configure('other.json', 'http://10.0.0.7:11434')
    const { code, out, err } = await runSvc(['config', 'check', '--config', 'other.json'], { home, cwd: folder, env: ENV })
    expect(code).to.equal(1)
    expect(out + err)
      .to.contain('PERMISSION_NOT_ACCEPTED')
      .and.contain('10.0.0.7:11434')
  })

  it('hooks-in: stores each of 100 events once, also when it arrives again', async () => {
    const requests = MANY.map(n => (n % 2 ? github(`d-${n >> 2}`, `{ "n": ${n >> 2}.0 }`) : stripe(`evt_${n >> 2}`)))
    const all = await statuses(requests)
    expect([all.filter(status => status === 202).length, all.filter(status => status === 200).length]).to.deep.equal([50, 50])
    const stored = await events()
    expect(new Set(stored.map(({ event }) => event)).size).to.equal(50)
    expect(stored).to.have.length(50)
    const refused = [github('d-new', '{ "n": 0.0 }'), { ...github('d-x', '{}'), raw: '{ }' }, stripe('evt_old', 1_700_000_000)]
    expect(await statuses(refused)).to.deep.equal([401, 401, 401])
    expect((await client.send({ method: 'GET', path: '/hooks/events' })).status).to.equal(401)
  })

  it('are updated while clients ask, and no request fails', async () => {
    const change = (code: string) =>
      code
        .replace('202 : 200', '201 : 200')
        .replace('text: content }', 'text: content.toUpperCase() }')
        .replace('`signed:${id}`', '`signed-2:${id}`')
    const files = await Promise.all(NAMES.map(name => pack(name, '1.1.0', change)))
    let isOver = false
    const seen = new Set<number>()
    const asking = (async () => {
      for (let n = 0; !isOver; n++)
        for (const status of await statuses([chat('plain'), stripe(`evt_update_${n}`), signed('GET', '/hooks/events')]))
          seen.add(status)
    })()
    const out = await done('plugins', 'install', ...files, '--yes').finally(() => (isOver = true))
    await asking
    expect([...seen].filter(status => status >= 300)).to.deep.equal([])
    expect(out).to.contain('has loaded the change')
    client.close()
    client = createClient(service.url)
    expect((await client.send(chat('plain'))).text).to.contain('HELLO, YOU')
    expect(await statuses([stripe('evt_new')])).to.deep.equal([201])
    await service.seen(/"principal":"signed-2:ci"/)
  })

  it('keep what they stored when the server is killed, in a folder that svc build writes', async () => {
    const used = chat('plain')
    expect(await statuses([used])).to.deep.equal([200])
    await service.kill()
    client.close()
    await building
    await serve({ command: ['npm', 'start', '--silent', '--'], cwd: join(folder, 'built') })
    expect(await statuses([used, stripe('evt_1'), stripe('evt_built')])).to.deep.equal([401, 200, 202])
    expect((await client.send(chat('plain'))).text).to.contain('Hello, you')
    expect((await events('?limit=1'))[0]).to.deep.include({ event: 'evt_built' })
  })
})
