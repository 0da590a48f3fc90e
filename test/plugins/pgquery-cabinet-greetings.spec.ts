import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { type Client, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith, lacking, skipBecause } from '../support/needs.ts'
import { publishInstalled, startRegistry } from '../support/registry.ts'
import { type Service, startService } from '../support/service.ts'

const run = promisify(execFile)
const EXAMPLES = fileURLToPath(new URL('../../examples/plugins/', import.meta.url))
const NAMES = ['pgquery', 'cabinet', 'greetings', 'greetings-french'] as const
const MANY = Array.from({ length: 100 }, (_, n) => n)

/** The life of four plugins in one server, each as a packed package, where svc runs it by default: the store in the process of svc, the others apart. */
describeWith('bubblewrap', 'examples/plugins/pgquery, cabinet and greetings, installed', function () {
  this.timeout(300_000)
  const stack = new AsyncDisposableStack()
  let folder: string
  let home: string
  let postgres: Postgres
  let env: Record<string, string>
  let service: Service
  let client: Client
  const done = async (...args: string[]) => {
    const { code, out, err } = await runSvc(args, { home, cwd: folder, env })
    expect(code, `${out}\n${err}`).to.equal(0)
    return out
  }
  const serve = async (options: object = {}) => {
    service = await startService({ home, cwd: folder, env, ...options })
    client = createClient(service.url)
  }
  const query = async (sql: string) =>
    (await client.post('/api/v1/chat', { message: `/tool query_database ${JSON.stringify({ sql })}` })).text
  const greet = async (language: string) => (await client.get(`/greetings/${language}?name=Ada`)).body
  const talk = async (message: string) => {
    const { status, text, body } = await client.post('/api/v1/chat', { message, tools: [] })
    expect(status, text).to.equal(200)
    return (body as { conversation_id: string }).conversation_id
  }
  const conversation = async (id: string) => (await client.get(`/api/v1/conversations/${id}`)).text
  /** `npm pack` of a copy of the example, with another version and other code where that is given. */
  const pack = async (name: string, version: string, change = (code: string) => code) => {
    const copy = join(folder, `${name}-${version}`)
    await cp(join(EXAMPLES, name), copy, { recursive: true })
    const manifest = join(copy, 'package.json')
    await writeFile(manifest, JSON.stringify({ ...JSON.parse(await readFile(manifest, 'utf8')), version }))
    const index = join(copy, 'index.js')
    await writeFile(index, change(await readFile(index, 'utf8')))
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: copy })
    return join(folder, (JSON.parse(stdout) as { filename: string }[])[0]!.filename)
  }

  before(async function () {
    skipBecause(this, lacking('postgres'))
    folder = await mkdtemp(join(tmpdir(), 'svc-four-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    home = join(folder, 'home')
    postgres = stack.use(await startPostgres())
    const registry = stack.use(await startRegistry())
    await publishInstalled(registry, folder, 'pg')
    env = { PGQUERY_PASSWORD: postgres.password, npm_config_registry: registry.url, npm_config_cache: join(folder, 'cache') }
    const config = {
      plugins: [{ use: '@svc/plugin-store-sqlite', enabled: false }],
      providers: { local: {} },
      cabinet: { file: join(folder, 'cabinet.db') },
      tools: { pgquery: { server: `localhost:${postgres.port}`, database: 'postgres', user: 'svc', max_rows: 5 } },
    }
    await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config))
    const files = await Promise.all(NAMES.map(name => pack(name, '1.0.0')))
    const out = await done('plugins', 'install', ...files, '--yes', '--trust')
    expect(out.match(/runs {6}in its own process/g)).to.have.length(3)
    expect(out.match(/runs {6}in the process of svc/g)).to.have.length(1)
    expect(out).to.contain(`connect to localhost:${postgres.port} (tools.pgquery.server)`)
    await serve()
  })
  after(async () => {
    client?.close()
    await service?.[Symbol.asyncDispose]()
    await stack.disposeAsync()
  })

  for (const name of NAMES)
    it(`${name}: passes its own tests, and has no errors in lint`, async () => {
      await run(process.execPath, ['--conditions=svc-source', '--test'], { cwd: join(EXAMPLES, name) })
      expect(await done('plugins', 'lint', join(EXAMPLES, name))).to.not.contain('error ')
    })

  it('answer 300 requests at once', async () => {
    const [rows, greetings, talks] = await Promise.all([
      Promise.all(MANY.map(n => query(`SELECT ${n} AS n, pg_sleep(0.01)`))),
      Promise.all(MANY.map(n => greet(n % 2 ? 'en' : 'fr'))),
      Promise.all(MANY.map(n => talk(`keep ${n}.`))),
    ])
    for (const [n, text] of rows.entries()) expect(text).to.include(`\\"n\\":${n},`)
    for (const [n, body] of greetings.entries()) expect(body).to.deep.include({ text: n % 2 ? 'Hello Ada' : 'Bonjour Ada' })
    const kept = await Promise.all(talks.map(conversation))
    for (const [n, text] of kept.entries()) expect(text).to.include(`keep ${n}.`)
  })

  it('are updated while clients ask, and no request fails', async () => {
    const changes: Record<string, [string, string]> = {
      pgquery: ['} rows`', '} rows of 1.1.0`'],
      cabinet: ["section: 'cabinet'", "// 1.1.0\n  section: 'cabinet'"],
      greetings: ["'English'", "'English 1.1.0'"],
      'greetings-french': ['Bonjour', 'Salut'],
    }
    const files = await Promise.all(
      NAMES.map(name =>
        pack(name, '1.1.0', code => {
          expect(code).to.contain(changes[name]![0])
          return code.replaceAll(...changes[name]!)
        })
      )
    )
    let isOver = false
    const talks: string[] = []
    const wrong: string[] = []
    const asking = (async () => {
      while (!isOver) {
        const [rows, french, id] = await Promise.all([query('SELECT 7 AS n'), greet('fr'), talk('while it changes')])
        talks.push(id)
        if (!rows.includes('\\"n\\":7')) wrong.push(rows)
        if (!/^(Bonjour|Salut) Ada$/.test((french as { text: string }).text)) wrong.push(JSON.stringify(french))
      }
    })()
    const out = await done('plugins', 'install', ...files, '--yes', '--trust').finally(() => (isOver = true))
    await asking
    expect(wrong).to.deep.equal([])
    expect(out).to.contain('has loaded the change')
    client.close()
    client = createClient(service.url)
    expect(await query('SELECT 7 AS n')).to.contain('1 rows of 1.1.0')
    expect(await greet('fr')).to.deep.equal({ language: 'Français', text: 'Salut Ada' })
    expect(await greet('en')).to.deep.equal({ language: 'English 1.1.0', text: 'Hello Ada' })
    for (const text of await Promise.all(talks.map(conversation))) expect(text).to.include('while it changes')
    expect(await done('plugins', 'info', 'svc-plugin-example-cabinet')).to.contain('1.1.0')
  })

  it('keep what was said when the server is killed', async () => {
    const ids = await Promise.all(MANY.map(n => talk(`before the end ${n}.`)))
    await service.kill()
    client.close()
    await serve()
    const kept = await Promise.all(ids.map(conversation))
    for (const [n, text] of kept.entries()) expect(text).to.include(`before the end ${n}.`)
    expect(await query('SELECT 8 AS n')).to.include('\\"n\\":8')
  })

  it('come to another machine without a registry as one bundle, and are in a folder that svc build writes', async () => {
    const id = await talk('before the move')
    await service.stop()
    client.close()
    await done('plugins', 'pack', 'all.bundle')
    const other = { home: join(folder, 'other'), cwd: folder, env: { ...env, npm_config_registry: 'http://127.0.0.1:9' } }
    const restored = await runSvc(['plugins', 'install', './all.bundle', '--yes', '--trust'], other)
    expect(restored.code, restored.err).to.equal(0)
    const named = /^restored (.*);/m
      .exec(restored.out)?.[1]
      ?.split(', ')
      .map(item => item.split(' ')[0])
    expect(named).to.have.members(NAMES.map(name => `svc-plugin-example-${name}`))
    await done('build', join(folder, 'built'))
    await serve({ command: ['npm', 'start', '--silent', '--'], home: join(folder, 'data'), cwd: join(folder, 'built') })
    expect(await conversation(id)).to.contain('before the move')
    expect(await query('SELECT 9 AS n')).to.include('\\"n\\":9')
    expect(((await greet('fr')) as { text: string }).text).to.match(/^(Bonjour|Salut) Ada$/)
  })
})
