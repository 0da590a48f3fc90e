import { createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Store } from '@svc/core/contracts'
import { storeKit } from '@svc/testing'
import { expect } from 'chai'
import { lintPlugin } from '../../plugins/admin/plugin-manager/src/commands/author/lint.ts'
import { until } from '../support/wait.ts'
import { type Client, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { newHome, type Service, startService } from '../support/service.ts'
import { describeWith } from '../support/needs.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples/plugins/', import.meta.url))
/** Examples with a test of their own. */
const APART = ['board', 'curated-build', 'pgquery', 'sla']
const SECRET = 'a secret that only this test knows'
const KEY = 'the-key-of-this-test-and-no-other'
const WORKFLOW = `name: names
inputs: { type: object, properties: { people: { type: array, items: { type: object } } }, required: [people] }
nodes:
  names: { type: pick, items: "\${{ input.people }}", key: name }
result: \${{ nodes.names }}
`
const CONFIG = {
  plugins: [{ use: '@svc/plugin-store-sqlite', enabled: false }],
  server: { auth: { enabled: true } },
  providers: { local: {}, polly: { type: 'parrot' } },
  notice: { text: 'tea at five' },
}

/** Installed as a person would, all in one go; what has no need of the host's process runs in one of its own. */
describeWith('bubblewrap', 'examples/plugins, installed', function () {
  this.timeout(120_000)
  let folder: string
  let home: string
  let service: Service
  let client: Client
  const env = { SVC_API_KEY: KEY, TICKET_SECRET: SECRET }
  const svc = (...args: string[]) => runSvc(args, { home, cwd: folder, env })
  const ask = (path: string, headers: Record<string, string> = { 'x-api-key': KEY }) =>
    client.send({ method: 'GET', path, headers })
  const post = (path: string, body: unknown) => client.send({ method: 'POST', path, headers: { 'x-api-key': KEY }, body })

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-examples-'))
    home = join(folder, 'home')
    await mkdir(join(folder, 'workflows'))
    await writeFile(join(folder, 'workflows', 'names.yaml'), WORKFLOW)
    await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...CONFIG, cabinet: { file: join(folder, 'cabinet.db') } }))
    const names = (await readdir(EXAMPLES, { withFileTypes: true })).filter(
      item => item.isDirectory() && !APART.includes(item.name)
    )
    const { code, out, err } = await svc(
      'plugins',
      'install',
      ...names.map(name => join(EXAMPLES, name.name)),
      '--yes',
      '--trust'
    )
    expect(code, `${out}\n${err}`).to.equal(0)
    service = await startService({ home, cwd: folder, env })
    client = createClient(service.url)
  })
  after(async () => {
    client?.close()
    await service?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  it('dice: a model calls the tool', async () => {
    const { text } = await post('/api/v1/chat', { message: '/tool roll_dice {"dice": 2, "sides": 2}' })
    expect(text).to.match(/[12] \+ [12] = [234]/)
  })

  it('parrot: answers a chat as a provider', async () => {
    const { text } = await post('/api/v1/chat', { message: 'hello', provider: 'polly' })
    expect(text).to.contain('hello hello')
  })

  it('pick: is a step of a workflow', async () => {
    const input = { people: [{ name: 'Ada' }, { name: 'Alan' }, { age: 3 }] }
    const { body } = await post('/api/v1/workflows/run', { workflow: 'names', input })
    expect(body, JSON.stringify(body)).to.deep.include({ success: true, result: { value: ['Ada', 'Alan', null] } })
  })

  it('ticket: admits only callers with a valid ticket', async () => {
    const ticket = (until: number, secret = SECRET) => {
      const said = `ada.${Math.floor(until / 1000)}`
      return { 'x-ticket': `${said}.${createHmac('sha256', secret).update(said).digest('hex')}` }
    }
    const [soon, past] = [Date.now() + 60_000, Date.now() - 60_000]
    expect((await ask('/notice', ticket(soon))).body).to.deep.equal({ notice: 'tea at five' })
    for (const bad of [ticket(past), ticket(soon, 'another secret, just as long'), { 'x-ticket': 'ada' }, {}])
      expect((await ask('/notice', bad as Record<string, string>)).status).to.equal(401)
  })

  it('greetings: a slot of its own, which another plugin fills', async () => {
    expect((await ask('/greetings/en?name=Ada')).body).to.deep.equal({ language: 'English', text: 'Hello Ada' })
    expect((await ask('/greetings/fr?name=Ada')).body).to.deep.equal({ language: 'Français', text: 'Bonjour Ada' })
    expect((await ask('/greetings/xx')).status).to.equal(404)
  })

  it('garden: a field of work without code', async () => {
    const { text } = await ask('/api/v1/workflows')
    expect(text).to.contain('plan_garden')
  })

  it('words: a tool, and a command of svc', async () => {
    const counted = await post('/api/v1/chat', { message: '/tool count_words {"text": "one two"}' })
    expect(counted.text).to.contain('count_words').and.contain('2')
    const { code, out, err } = await svc('words', 'one two', 'three')
    expect([code, out, err]).to.deep.equal([0, '3\n', ''])
  })

  it('cabinet: is where the server keeps what is said', async () => {
    const { body } = await post('/api/v1/chat', { message: 'keep this' })
    const { conversation_id: id } = body as { conversation_id: string }
    expect((await ask(`/api/v1/conversations/${id}`)).text).to.contain('keep this')
    const written = await Promise.all(['cabinet.db', 'cabinet.db-wal'].map(name => readFile(join(folder, name), 'latin1')))
    expect(written.join('').includes('keep this')).to.equal(true)
  })

  it('svc plugins top shows the usage of each, per process for isolated plugins', async () => {
    const top = async () => {
      const { code, out, err } = await svc('plugins', 'top', '--json')
      expect(code, err).to.equal(0)
      const { plugins } = JSON.parse(out) as { plugins: Record<string, unknown>[] }
      return (name: string) => plugins.find(plugin => plugin.plugin === `svc-plugin-example-${name}`)
    }
    // what a process takes is looked at with its beats
    const of = await until(top, report => Number(report('dice')?.memory_bytes) > 0)
    expect(of('dice')).to.include({ calls: 1, errors: 0, isolation: 'process', restarts: 0, quarantined: false })
    expect(of('dice')?.memory_bytes).to.be.above(1_000_000)
    expect(of('ticket')?.errors).to.be.at.least(3)
    expect(of('words')?.isolation).to.equal('process')
    const info = ['plugins', 'info', 'svc-plugin-example-dice', '--json']
    const now = JSON.parse((await svc(...info)).out) as { running: { memoryBytes: number }[] }
    expect(now.running[0]?.memoryBytes).to.be.above(1_000_000)
    expect(now).to.not.have.property('process_as_of')
    // the owner of the home needs no key
    const report = await runSvc(info, { home, cwd: folder })
    expect(JSON.parse(report.out)).to.not.have.property('process_as_of')
    const table = await svc('plugins', 'top', '--sort', 'errors')
    expect(table.out.split('\n')[0]).to.match(/^PLUGIN +CALLS +ERRORS +TIME +MEMORY +CPU +RESTARTS +REFUSED$/)
    expect(table.out.split('\n')[1]).to.match(/^svc-plugin-example-ticket +\d+ +\d+ +[\d.]+ m?s +[\d.]+ MiB/)
  })
})

/** The kit makes up what it calls them with. The other examples have tests of their own, and run lint with them. */
describe('examples/plugins of few lines', () => {
  for (const name of ['dice', 'garden', 'greetings-french', 'notice', 'parrot', 'pick', 'ticket', 'words'])
    it(`${name} passes the kit, and has no errors in lint`, async () => {
      const folder = join(EXAMPLES, name)
      const home = await newHome()
      const { code, out } = await runSvc(['plugins', 'test', folder, '--isolation', 'in-process'], { home }).finally(() =>
        rm(home, { recursive: true, force: true })
      )
      expect(code, out).to.equal(0)
      expect((await lintPlugin(folder)).filter(({ level }) => level === 'error')).to.deep.equal([])
    }).timeout(120_000)
})

/** As its plugin makes it. */
type Cabinet = { readonly createCabinet: (file: string) => Store & AsyncDisposable }

describe('examples/plugins/cabinet, by the store kit', function () {
  this.timeout(180_000)
  const open = async () => {
    const { createCabinet } = (await import(join(EXAMPLES, 'cabinet/cabinet.js'))) as Cabinet
    const folder = await mkdtemp(join(tmpdir(), 'svc-cabinet-'))
    const file = join(folder, 'cabinet.db')
    let store = createCabinet(file)
    const others: (typeof store)[] = []
    return {
      store,
      async reopen() {
        await store[Symbol.asyncDispose]()
        return (store = createCabinet(file))
      },
      second: async () => (others.push(createCabinet(file)), others.at(-1)!),
      async [Symbol.asyncDispose]() {
        for (const other of [store, ...others]) await other[Symbol.asyncDispose]()
        await rm(folder, { recursive: true })
      },
    }
  }
  for (const testCase of storeKit(open)) it(testCase.title, testCase.run)
})

describe('a store that svc plugins new has made', function () {
  this.timeout(120_000)
  it('is installed where it is trusted and a server can start with it, once it has been looked at', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-own-store-'))
    const home = join(folder, 'home')
    const svc = (...args: string[]) => runSvc(args, { home, cwd: folder })
    const done = async (...args: string[]) => {
      const { code, out, err } = await svc(...args)
      expect(code, `${out}\n${err}`).to.equal(0)
      return out
    }
    try {
      await done('plugins', 'new', 'svc-plugin-own', '--kind', 'store', '--js')
      const plugins = [{ use: '@svc/plugin-store-sqlite', enabled: false }]
      await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ plugins }))
      const refused = await svc('plugins', 'install', './svc-plugin-own', '--yes')
      expect(refused.code).to.equal(1)
      expect(refused.err).to.contain('PLUGIN_NEEDS_TRUST  svc-plugin-own').and.contain('kind "store"')
      const shown = await done('plugins', 'install', './svc-plugin-own', '--trust', '--dry-run')
      expect(shown).to.contain('runs      in the process of svc')
      expect(existsSync(join(home, 'svc-plugins.lock'))).to.equal(false)
      await done('plugins', 'install', './svc-plugin-own', '--yes', '--trust')
      expect(await done('plugins', 'info', 'svc-plugin-own'))
        .to.contain('svc-plugin-own')
        .and.contain('store')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})
