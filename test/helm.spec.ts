import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startPostgres, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { parseAllDocuments } from 'yaml'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { describeWith, lacking, skipBecause } from './support/needs.ts'
import { newHome, startService } from './support/service.ts'

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}
interface Container {
  readonly args: readonly string[]
  readonly env: readonly Variable[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
}
type Labels = Readonly<Record<string, string>>
interface Pods {
  readonly metadata: { readonly labels: Labels }
  readonly spec: { readonly terminationGracePeriodSeconds?: number; readonly containers: readonly [Container] }
}
interface Resource {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly annotations?: Labels }
  readonly spec: Readonly<Record<string, unknown>> & { readonly template: Pods; readonly replicas?: number }
}

const CHART = fileURLToPath(new URL('../deploy/helm/svc', import.meta.url))
const GUIDE = new URL('../docs/guides/scale.md', import.meta.url)
const KEY = 'the-key-of-the-deployment-0123456789'
const SECRETS = '/run/secrets/svc/'
const run = promisify(execFile)

/** What the chart makes of these values, by kind. */
async function rendered(values: Readonly<Record<string, string>>): Promise<ReadonlyMap<string, Resource>> {
  const set = Object.entries(values).flatMap(([name, value]) => ['--set', `${name}=${value}`])
  const { stdout } = await run('helm', ['template', 'release', CHART, ...set])
  const resources = parseAllDocuments(stdout).map(document => document.toJS() as Resource)
  return new Map(resources.map(resource => [resource.kind, resource]))
}

/** The values of a chart with all that it can have. */
const EVERYTHING = {
  'store.url': 'postgres://svc@pooler.example/svc',
  'store.directUrl': 'postgres://svc@db.example/svc',
  'redis.url': 'redis://redis.example:6379',
  'redis.hasPassword': 'true',
  'server.trustedProxies[0]': '10.0.0.0/8',
  'autoscaling.enabled': 'true',
}

const podsOf = (resource: Resource | undefined): Pods => resource!.spec.template
const containerOf = (resource: Resource | undefined): Container => podsOf(resource).spec.containers[0]

describeWith('helm', 'the Helm chart', function () {
  this.timeout(120_000)

  it('has no fault for the linter, and says what it needs', async () => {
    const set = Object.entries(EVERYTHING).flatMap(([name, value]) => ['--set', `${name}=${value}`])
    const { stdout } = await run('helm', ['lint', '--strict', CHART, ...set])
    expect(stdout).to.include('0 chart(s) failed').and.not.include('[WARNING]')
    const refused = await rendered({}).catch((error: unknown) => String(error))
    expect(refused).to.include('store.url is required')
  })

  it('selects its own pods, and gives them the time that they need to end', async () => {
    const chart = await rendered({ ...EVERYTHING, 'server.shutdownDelay': '20', 'server.shutdownTimeout': '50' })
    expect([...chart.keys()].sort()).to.deep.equal([
      'Deployment',
      'HorizontalPodAutoscaler',
      'Job',
      'PodDisruptionBudget',
      'Service',
    ])
    const pods = podsOf(chart.get('Deployment'))
    const { labels } = pods.metadata
    expect(chart.get('Deployment')!.spec.selector).to.deep.equal({ matchLabels: labels })
    expect(chart.get('PodDisruptionBudget')!.spec).to.deep.include({ maxUnavailable: 1, selector: { matchLabels: labels } })
    expect(chart.get('Service')!.spec.selector).to.deep.equal(labels)
    expect(pods.spec.terminationGracePeriodSeconds).to.be.above(70)
    expect(chart.get('Job')!.metadata.annotations).to.deep.include({ 'helm.sh/hook': 'pre-install,pre-upgrade' })
  })

  it('scales by the metric that the guide defines, and sets the number of servers only without that', async () => {
    const chart = await rendered(EVERYTHING)
    const { metrics, scaleTargetRef } = chart.get('HorizontalPodAutoscaler')!.spec as unknown as {
      readonly scaleTargetRef: { readonly name: string }
      readonly metrics: readonly { readonly external?: { readonly metric: { readonly name: string } } }[]
    }
    expect(scaleTargetRef.name).to.equal(chart.get('Deployment')!.metadata.name)
    const [name] = metrics.flatMap(({ external }) => external?.metric.name ?? [])
    expect(await readFile(GUIDE, 'utf8')).to.include(`name: { as: ${name} }`)
    expect(chart.get('Deployment')!.spec).not.to.have.property('replicas')
    expect((await rendered({ 'store.url': 'postgres://db/svc' })).get('Deployment')!.spec.replicas).to.equal(2)
  })

  it('makes the tables and serves, with its commands, variables, secrets and probes', async function () {
    skipBecause(this, lacking('postgres') ?? lacking('redis'))
    await using stack = new AsyncDisposableStack()
    const postgres = stack.use(await startPostgres())
    const redis = stack.use(await startRedis())
    const folder = await mkdtemp(join(tmpdir(), 'svc-helm-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const url = `postgres://${postgres.user}@127.0.0.1:${postgres.port}/postgres`
    const chart = await rendered({
      'store.url': url,
      'store.directUrl': url,
      'redis.url': `redis://127.0.0.1:${redis.port}`,
      'redis.hasPassword': 'true',
      'server.trustedProxies[0]': '127.0.0.1',
      'server.shutdownDelay': '0',
    })
    await writeFile(join(folder, 'db-password'), postgres.password)
    await writeFile(join(folder, 'redis-password'), redis.password)
    const envOf = ({ env }: Container) =>
      Object.fromEntries(
        env.map(({ name, value, valueFrom }) => {
          if (valueFrom) expect(valueFrom.secretKeyRef).to.deep.equal({ name: 'svc', key: 'api-key' })
          return [name, valueFrom ? KEY : value!.replace(SECRETS, `${folder}/`)]
        })
      )
    const home = await newHome()
    stack.defer(() => rm(home, { recursive: true, force: true }))
    const migration = containerOf(chart.get('Job'))
    const made = await runSvc(migration.args, { home, env: envOf(migration) })
    expect(made, made.err).to.include({ code: 0 })
    const server = containerOf(chart.get('Deployment'))
    const [command, ...args] = server.args
    expect(command).to.equal('serve')
    // as the image sets it
    const env = { ...envOf(server), SVC_SERVER__AUTH__ENABLED: 'true' }
    const service = stack.use(await startService({ args, env }))
    const client = createClient(service.url, { keepAlive: false })
    for (const { httpGet } of [server.startupProbe!, server.livenessProbe!, server.readinessProbe!]) {
      expect(httpGet.port).to.equal(server.ports![0]!.name)
      expect((await client.get(httpGet.path)).status, httpGet.path).to.equal(200)
    }
    const headers = { authorization: `Bearer ${KEY}` }
    const body = { message: 'hello' }
    expect((await client.send({ method: 'POST', path: '/api/v1/chat', headers, body })).status).to.equal(200)
    expect(await redis.command('KEYS', 'svc:svc:*:bus:members')).to.have.length(1)
  })
})
