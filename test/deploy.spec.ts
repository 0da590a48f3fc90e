import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { parse } from 'yaml'
import { runSvc } from './support/command.ts'
import { lacking, skipBecause } from './support/needs.ts'
import { isReady, startBalancer, startTurns } from './support/nodes.ts'
import { newHome, post, type Service, startService } from './support/service.ts'
import { until } from './support/wait.ts'

interface ComposeService {
  readonly image?: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string | null>>
  readonly profiles?: readonly string[]
  readonly depends_on?: unknown
}
const FOLDER = new URL('../deploy/', import.meta.url)
const KEY = 'the-key-of-the-deployment-0123456789'

/** A9 of the acceptance of clusters, with `nodes/scaling.spec.ts`. Without containers: the commands and variables of the services, with addresses of this machine. */
describe('the services of deploy/compose.yaml', () => {
  let services: Readonly<Record<string, ComposeService>>
  let postgres: Postgres
  let folder: string
  before(async function () {
    skipBecause(this, lacking('postgres') ?? lacking('haproxy'))
    const text = await readFile(new URL('compose.yaml', FOLDER), 'utf8')
    ;({ services } = parse(text, { merge: true }) as { services: typeof services })
    folder = await mkdtemp(join(tmpdir(), 'svc-deploy-'))
    postgres = await startPostgres({ settings: { max_connections: 100 } })
    await postgres.query('CREATE DATABASE svc')
    await writeFile(join(folder, 'password'), `${postgres.password}\n`)
  })
  after(async () => {
    await postgres?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  const environmentOf = ({ environment = {} }: ComposeService): Record<string, string> => ({
    ...Object.fromEntries(Object.entries(environment).flatMap(([name, value]) => (value === null ? [] : [[name, value]]))),
    SVC_API_KEY: KEY,
    SVC_STORE__URL: String(environment.SVC_STORE__URL).replace('@postgres:5432', `@127.0.0.1:${postgres.port}`),
    SVC_STORE__PASSWORD_FILE: join(folder, 'password'),
    // as the image sets them, but for the limits of requests; the balancer has another address here
    SVC_SERVER__HOST: '0.0.0.0',
    SVC_SERVER__AUTH__ENABLED: 'true',
    SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.1"]',
  })

  it('are a database, a migration, two nodes and a balancer, and with a profile Redis', () => {
    expect(Object.keys(services)).to.deep.equal(['postgres', 'migrate', 'node-1', 'node-2', 'balancer', 'redis'])
    expect(Object.entries(services).flatMap(([name, { profiles }]) => (profiles ? [[name, profiles]] : []))).to.deep.equal([
      ['redis', ['redis']],
    ])
  })

  it('serve behind the balancer, and no request fails while one node after the other is replaced', async () => {
    const { migrate } = services
    const home = await newHome()
    const made = await runSvc(migrate!.command!, { home, env: environmentOf(migrate!) })
    expect(made, made.err).to.include({ code: 0 })
    expect(made.out).to.match(/^the tables are created in the schema svc\n/)
    const start = async (name: string, port: number): Promise<Service> => {
      const { command, ...service } = services[name]!
      expect(command).to.deep.equal(['serve'])
      const env = { ...environmentOf(service), SVC_SERVER__PORT: String(port) }
      return startService({ env, ownPort: true })
    }
    const ports = { 'node-1': await freePort(), 'node-2': await freePort() }
    await using nodes = new AsyncDisposableStack()
    const running = new Map<string, Service>()
    for (const name of ['node-1', 'node-2'] as const) running.set(name, nodes.use(await start(name, ports[name])))
    await using balancer = await startBalancer(await freePort(), Object.values(ports))
    const { url } = balancer
    await until(() => isReady(url), Boolean)
    expect((await post(`${url}/api/v1/chat`, { message: 'hello' })).status).to.equal(401)
    const turns = startTurns(url, 6, { authorization: `Bearer ${KEY}` })
    try {
      for (const name of ['node-1', 'node-2'] as const) {
        await turns.more(51)
        await (name === 'node-1' ? endAsContainer : drainByCommand)(running.get(name)!)
        running.set(name, nodes.use(await start(name, ports[name])))
        await until(() => isReady(running.get(name)!.url), Boolean)
      }
    } finally {
      await turns.stop()
    }
    expect(turns.failed).to.deep.equal([])
    expect(turns.answers()).to.be.above(100)
    await rm(home, { recursive: true, force: true })
  }).timeout(180_000)
})

/** SIGTERM, as the container engine sends it. */
async function endAsContainer(node: Service): Promise<void> {
  expect(await node.stop()).to.equal(0)
}

/** `svc drain`: the node answers as before, but is not ready. */
async function drainByCommand(node: Service): Promise<void> {
  const wrong = await runSvc(['drain', '--delay', '-1'], { home: node.home })
  expect(wrong.code).to.equal(2)
  const drained = runSvc(['drain', '--delay', '4', '--json'], { home: node.home })
  const ready = await until(
    async () => {
      const answer = await fetch(`${node.url}/health/ready`)
      return { status: answer.status, body: await answer.json() }
    },
    ({ status }) => status === 503
  )
  expect(ready.body).to.deep.equal({ status: 'leaving' })
  expect((await fetch(`${node.url}/health`)).status).to.equal(200)
  const { code, out, err } = await drained
  expect(code, err).to.equal(0)
  expect(JSON.parse(out)).to.include({ url: node.url, pid: node.child.pid })
}
