import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { type Client, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { type Service, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'

const run = promisify(execFile)
const EXAMPLES = fileURLToPath(new URL('../../examples/plugins/', import.meta.url))
const NAMES = ['sla', 'board'] as const
const KEY = 'the-key-of-this-test-and-no-other'
const POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
const MARKUP = '<script>alert("board")</script>'

const INPUTS = 'inputs: { type: object, required: [target], properties: { target: { type: string } } }'
const WORKFLOWS = {
  paid: `name: paid
${INPUTS}
nodes:
  payment:
    type: sla
    target: \${{ input.target }}
    do: { type: wait, event: paid }
    branches: { met: end, breached: remind }
  remind: { type: transform, value: { remind: true, payment: "\${{ nodes.payment }}" } }
`,
  failing: `name: failing
nodes:
  work:
    type: sla
    target: 1h
    do: { type: wait, until: never }
    branches: { met: end, breached: end }
`,
  question: `name: question
nodes: { ask: { type: human, message: '${MARKUP}', branches: { approved: end } } }
`,
}

interface Sla {
  readonly status: string
  readonly started_at: string
  readonly due_at: string
  readonly result: unknown
}
interface Status {
  readonly workflow_id: string
  readonly status: string
  readonly result: Sla & { readonly payment: Sla }
}

/** The life of two plugins in one server, each as a packed package in a process of its own. */
describeWith('bubblewrap', 'examples/plugins/sla and board, installed', function () {
  this.timeout(180_000)
  const env = { SVC_API_KEY: KEY }
  let folder: string
  let home: string
  let service: Service
  let client: Client
  const svc = (...args: string[]) => runSvc(args, { home, cwd: folder, env })
  const done = async (...args: string[]) => {
    const { code, out, err } = await svc(...args)
    expect(code, `${out}\n${err}`).to.equal(0)
    return out
  }
  const serve = async () => {
    service = await startService({ home, cwd: folder, env })
    client = createClient(service.url)
  }
  const get = (path: string, key = KEY) => client.send({ method: 'GET', path, headers: { 'x-api-key': key } })
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    client.send({ method: 'POST', path, body, headers: { 'x-api-key': KEY, ...headers } })
  const start = async (workflow: string, input: object) => {
    const { body, text } = await post('/api/v1/workflows/run', { workflow, input }, { prefer: 'respond-async' })
    expect((body as Status).workflow_id, text).to.be.a('string')
    return (body as Status).workflow_id
  }
  const pay = async (id: string) => {
    const { status, text } = await post(`/api/v1/workflows/${id}/events`, { name: 'paid', data: id })
    expect(status, text).to.equal(200)
  }
  const ended = async (id: string) => {
    const read = async () => (await get(`/api/v1/workflows/${id}/status`)).body as Status
    return until(read, ({ status }) => status !== 'running')
  }
  const isPaid = async (id: string) => {
    const { status, result } = await ended(id)
    expect(status).to.equal('completed')
    expect(result).to.deep.include({ status: 'met', result: { by: 'event', data: id } })
  }
  const isBreached = async (id: string, targetMs: number) => {
    const { status, result } = await ended(id)
    expect(status).to.equal('completed')
    const { payment } = result
    expect(payment).to.deep.include({ status: 'breached', result: null })
    expect(Date.parse(payment.due_at) - Date.parse(payment.started_at)).to.equal(targetMs)
  }
  /** `npm pack` of a copy of the example, with another version and other code where that is given. */
  const pack = async (name: string, version: string, change = (code: string) => code) => {
    const copy = join(folder, `${name}-${version}`)
    await cp(join(EXAMPLES, name), copy, { recursive: true })
    const manifest = join(copy, 'package.json')
    await writeFile(manifest, JSON.stringify({ ...JSON.parse(await readFile(manifest, 'utf8')), version }))
    for (const file of ['page.js', 'sla.js'].map(item => join(copy, item)))
      await readFile(file, 'utf8').then(
        code => writeFile(file, change(code)),
        () => undefined
      )
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: copy })
    const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[]
    return { file: join(folder, packed!.filename), files: packed!.files.map(({ path }) => path) }
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-sla-board-'))
    home = join(folder, 'home')
    await mkdir(join(folder, 'workflows'))
    for (const [name, text] of Object.entries(WORKFLOWS)) await writeFile(join(folder, 'workflows', `${name}.yaml`), text)
    const config = { server: { auth: { enabled: true } }, providers: { local: {} }, board: { refresh_s: 0.2 } }
    await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config))
    const packed = await Promise.all(NAMES.map(name => pack(name, '1.0.0')))
    expect(packed[0]!.files).to.have.members(['README.md', 'hours.js', 'index.js', 'package.json', 'sla.js'])
    expect(packed[1]!.files).to.have.members(['README.md', 'index.js', 'items.js', 'package.json', 'page.js'])
    const out = await done('plugins', 'install', ...packed.map(({ file }) => file), '--yes')
    expect(out.match(/runs {6}in its own process/g)).to.have.length(2)
    expect(out).to.contain('use the service conversations').and.contain('GET /board/live: needs the scope read')
    await serve()
  })
  after(async () => {
    client?.close()
    await service?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  for (const name of NAMES)
    it(`${name}: passes its kit and its own tests, and has no errors in lint`, async () => {
      expect(await done('plugins', 'test', join(EXAMPLES, name))).to.match(/[1-9]\d* passed, 0 failed/)
      expect(await done('plugins', 'lint', join(EXAMPLES, name))).to.not.contain('error ')
      await run(process.execPath, ['--conditions=svc-source', '--test'], { cwd: join(EXAMPLES, name) })
    })

  it('sla: measures 50 runs at once', async () => {
    const ids = await Promise.all(Array.from({ length: 50 }, (_, n) => start('paid', { target: n % 2 ? '1h' : '500ms' })))
    await Promise.all(ids.map((id, n) => (n % 2 ? pay(id) : isBreached(id, 500))))
    await Promise.all(ids.filter((_, n) => n % 2).map(isPaid))
  })

  it('sla: fails when its body fails', async () => {
    const { status } = await ended(await start('failing', {}))
    expect(status).to.equal('failed')
  })

  it('board: answers 100 requests at once with the runs of the caller, who needs the scope', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => get(n % 2 ? '/board' : '/board/items')))
    for (const { status, text } of answers) expect([status, text.includes('paid')]).to.deep.equal([200, true])
    for (const path of ['/board', '/board/live', '/board/items']) expect((await get(path, 'wrong')).status).to.equal(401)
    const token = async (...args: string[]) =>
      (JSON.parse(await done('tokens', 'create', '--json', ...args)) as { token: string }).token
    const [reader, talker] = [await token('--name', 'anna', '--scope', 'read'), await token('--name', 'ben', '--scope', 'chat')]
    const as = (bearer: string) =>
      client.send({ method: 'GET', path: '/board/items', headers: { authorization: `Bearer ${bearer}` } })
    expect((await as(reader)).body).to.deep.equal({ conversations: [], runs: [] })
    expect((await as(talker)).status).to.equal(403)
  })

  it('board: shows what people wrote as text, on a page that runs no script', async () => {
    await start('question', {})
    await post('/api/v1/chat', { message: 'hello' })
    const { headers, text } = await until(
      () => get('/board'),
      ({ text: page }) => page.includes('alert')
    )
    expect(headers).to.include({ 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY })
    expect(text).to.contain('&lt;script&gt;alert(&quot;board&quot;)&lt;/script&gt;').and.not.contain('<script')
    expect(text).to.match(/<td>conv_\w+<\/td>/)
  })

  it('board: updates the live page for as long as its reader stays', async () => {
    const leaving = new AbortController()
    const { signal } = leaving
    const response = await fetch(`${service.url}/board/live`, { headers: { 'x-api-key': KEY }, signal })
    expect(response.headers.get('content-security-policy')).to.equal(POLICY)
    const id = await start('paid', { target: '1h' })
    let page = ''
    const latest = () => page.split('<main>').at(-1)!
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    const readUntil = async (pattern: RegExp) => {
      while (!pattern.test(latest())) page += (await reader.read()).value ?? ''
    }
    await readUntil(/<td>paid<\/td><td>running<\/td>/)
    await pay(id)
    await readUntil(/^(?!.*<td>paid<\/td><td>running<\/td>)[^]*<\/main>/s)
    expect(page.match(/<!doctype html>/g)).to.have.length(1)
    leaving.abort()
    await service.seen(/"route":"\/board\/live".*"gone":true/)
  })

  it('both are updated while runs wait and clients ask, and no request fails', async () => {
    const waiting = await Promise.all(Array.from({ length: 10 }, () => start('paid', { target: '1h' })))
    const next = await Promise.all(
      NAMES.map(name =>
        pack(name, '1.1.0', code =>
          code.replace('<h1>Board</h1>', '<h1>Board 1.1.0</h1>').replace('branch: status,', 'branch: status, // 1.1.0')
        )
      )
    )
    const open = get('/board/live')
    let isOver = false
    const statuses = new Set<number>()
    const asking = (async () => {
      while (!isOver)
        for (const { status } of await Promise.all(['/board', '/board/items'].map(item => get(item)))) statuses.add(status)
    })()
    const out = await done('plugins', 'install', ...next.map(({ file }) => file), '--yes').finally(() => (isOver = true))
    await asking
    expect((await open).status, 'the live page ends with its worker').to.equal(200)
    expect([...statuses]).to.deep.equal([200])
    expect(out).to.contain('1.1.0').and.contain('has loaded the change')
    client.close()
    client = createClient(service.url)
    expect((await get('/board')).text).to.contain('Board 1.1.0')
    await Promise.all(waiting.map(pay))
    await Promise.all(waiting.map(isPaid))
  })

  it('sla: keeps deadlines when the server is killed', async () => {
    const [late, open] = [await start('paid', { target: '1s' }), await start('paid', { target: '1h' })]
    await service.kill()
    client.close()
    await serve()
    await isBreached(late, 1000)
    await pay(open)
    await isPaid(open)
  })

  it('both are in a folder that svc build writes', async () => {
    await service.stop()
    client.close()
    await done('build', join(folder, 'built'))
    await cp(join(folder, 'workflows'), join(folder, 'built', 'workflows'), { recursive: true })
    service = await startService({
      command: ['npm', 'start', '--silent', '--'],
      home: join(folder, 'data'),
      cwd: join(folder, 'built'),
      env,
    })
    client = createClient(service.url)
    await isBreached(await start('paid', { target: '100ms' }), 100)
    expect((await get('/board')).text).to.match(/Board 1\.1\.0[^]*<td>paid<\/td><td>completed<\/td>/)
  })
})
