import { mock } from 'node:test'
import { expect } from 'chai'
import { definePlugin, svcError } from '@svc/core'
import {
  type BusMember,
  type Check,
  type CheckReport,
  Cluster,
  type HealthFact,
  HealthFacts,
  NodeBus,
  Routes,
  Store,
  type StoreProbe,
} from '@svc/core/contracts'
import { item, service } from '@svc/testing'
import { serveRest, ctx } from './support/rest-server.ts'

const check = (report: CheckReport): Check => ({ probe: async () => report })

describe('GET /health', () => {
  it('is healthy when all checks are, a cache that is off included', async () => {
    await using served = await serveRest({
      checks: { providers: check({ status: 'healthy' }), database: check({ status: 'healthy' }) },
    })
    const { status, body } = await served.call('GET', '/health')
    expect(status).to.equal(200)
    expect(body).to.deep.equal({
      status: 'healthy',
      version: '1.2.3',
      uptime_seconds: 0,
      checks: { database: 'healthy', providers: 'healthy', cache: 'healthy' },
    })
  })

  it('is degraded when a part is, and shows further checks', async () => {
    await using served = await serveRest({ checks: { queue: check({ status: 'degraded', reason: 'secret' }) } })
    const { status, body, text } = await served.call('GET', '/health')
    expect([status, body.status, body.checks]).to.deep.equal([
      200,
      'degraded',
      { database: 'healthy', providers: 'healthy', cache: 'healthy', queue: 'degraded' },
    ])
    expect(text).not.to.include('secret')
  })

  it('shows the fields that plugins add; a failing plugin adds nothing, and no plugin can change the record itself', async () => {
    const facts: Record<string, HealthFact> = {
      good: { facts: async () => ({ tools: 3, status: 'splendid', version: '9' }) },
      bad: { facts: () => Promise.reject(new Error('secret')) },
    }
    await using served = await serveRest({ more: Object.entries(facts).map(([name, fact]) => item(HealthFacts, name, fact)) })
    const { status, body, text } = await served.call('GET', '/health')
    expect([status, body.status, body.version, body.tools]).to.deep.equal([200, 'healthy', '1.2.3', 3])
    expect(text).not.to.include('secret')
  })

  it('is unhealthy, with 503, when a check fails or throws', async () => {
    for (const database of [check({ status: 'unhealthy' }), { probe: () => Promise.reject(new Error('secret')) }]) {
      await using served = await serveRest({ checks: { database } })
      const { status, body, text } = await served.call('GET', '/health')
      expect([status, body.status, (body.checks as { database: string }).database]).to.deep.equal([503, 'unhealthy', 'unhealthy'])
      expect(text).not.to.include('secret')
    }
  })

  it('logs the reason once for each change, and shows it to the scope admin', async () => {
    const lines: string[] = []
    let report: () => Promise<CheckReport> = async () => ({ status: 'degraded', reason: 'the queue is long' })
    await using served = await serveRest({
      checks: { queue: { probe: () => report() } },
      log: { destination: { write: line => void lines.push(line) } },
    })
    const logged = () =>
      lines
        .map(line => JSON.parse(line))
        .flatMap(({ check: name, level, status, reason, err }) =>
          name ? [{ name, level, status, reason, err: err?.message }] : []
        )
    for (let i = 0; i < 3; i++) await served.call('GET', '/health')
    const { body } = await served.call('GET', '/api/v1/status')
    expect(body.checks).to.deep.equal({ queue: { status: 'degraded', reason: 'the queue is long' } })
    report = () => Promise.reject(new Error('it broke'))
    for (let i = 0; i < 2; i++) await served.call('GET', '/health')
    report = async () => ({ status: 'healthy' })
    for (let i = 0; i < 2; i++) await served.call('GET', '/health')
    const none = { status: undefined, reason: undefined, err: undefined }
    expect(logged()).to.deep.equal([
      { ...none, name: 'queue', level: 40, status: 'degraded', reason: 'the queue is long' },
      { name: 'queue', level: 40, status: 'unhealthy', reason: 'INTERNAL_ERROR', err: 'it broke' },
      { ...none, name: 'queue', level: 30 },
    ])
    expect((await served.call('GET', '/api/v1/status')).body).to.not.have.property('checks')
  })

  it('is unhealthy when a check does not answer within five seconds, and asks it to stop', async () => {
    const asked = Promise.withResolvers<AbortSignal>()
    const hanging: Check = {
      probe(ctx) {
        asked.resolve(ctx.signal)
        return new Promise(() => {})
      },
    }
    await using served = await serveRest({ checks: { database: hanging } })
    const route = served.host.slot(Routes).get('health')!
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const reply = route.handle!({ params: {}, query: {}, headers: {}, body: undefined }, ctx)
      const signal = await asked.promise
      mock.timers.tick(5_000)
      expect((await reply).status).to.equal(503)
      expect(signal.aborted).to.equal(true)
    } finally {
      mock.timers.reset()
    }
  })

  it('names an optional plugin that failed, and tells no more than its code', async () => {
    const broken = definePlugin({
      setup() {
        throw svcError('KEY_MISSING', 'no key in /secret/place')
      },
    })
    await using served = await serveRest({ more: [{ name: 'broken', use: broken, optional: true }] })
    const { status, body, text } = await served.call('GET', '/health')
    expect([status, body.status]).to.deep.equal([200, 'degraded'])
    expect(body.plugins).to.have.property('broken')
    expect(text).not.to.include('/secret/place')
  })

  it('has a word for the process and one for new requests', async () => {
    await using served = await serveRest()
    const live = await served.call('GET', '/health/live')
    const ready = await served.call('GET', '/health/ready')
    expect([live.status, live.body, ready.status, ready.body]).to.deep.equal([200, { status: 'alive' }, 200, { status: 'ready' }])
  })

  it('is not ready while its store fails, hangs or accepts no writes, and asks it at most once a second', async () => {
    const probed = { kind: 'made-up', durable: true, scope: 'cluster', role: 'primary', clockOffsetMs: 0 } as const
    const answers: [() => Promise<StoreProbe>, number, string][] = [
      [async () => probed, 200, 'ready'],
      [async () => ({ ...probed, role: 'replica' }), 503, 'store_unavailable'],
      [() => Promise.reject(new Error('secret')), 503, 'store_unavailable'],
      [() => new Promise(() => {}), 503, 'store_unavailable'],
    ]
    for (const [probe, status, word] of answers) {
      let asked = 0
      const unused = Object.fromEntries(Object.keys(Store.methods).map(name => [name, probe])) as unknown as Store
      const store = { ...unused, probe: () => (asked++, probe()) }
      await using served = await serveRest({ more: [service(Store, store)] })
      const replies = await Promise.all(Array.from({ length: 5 }, () => served.call('GET', '/health/ready')))
      for (const reply of replies) expect([reply.status, reply.body]).to.deep.equal([status, { status: word }])
      expect(asked).to.equal(1)
    }
  })

  it('is not ready while the other servers of its cluster take it for lost, or its bus fails', async () => {
    const self: BusMember = { worker: 'n.s.1', node: 'n', facts: null }
    const cases: [() => Promise<readonly BusMember[]>, object, string][] = [
      [async () => [self], { clusterId: 'shop' }, 'ready'],
      [async () => [{ ...self, worker: 'n.s.2' }], { clusterId: 'shop' }, 'bus_unavailable'],
      [() => Promise.reject(new Error('secret')), { clusterId: 'shop' }, 'bus_unavailable'],
      [() => new Promise(() => {}), { clusterId: 'shop' }, 'bus_unavailable'],
      [() => Promise.reject(svcError('BUS_NOT_JOINED', 'not joined')), { clusterId: 'shop' }, 'ready'],
      [() => Promise.reject(new Error('secret')), {}, 'ready'],
    ]
    for (const [members, place, word] of cases) {
      const bus = {
        ...Object.fromEntries(Object.keys(NodeBus.methods).map(name => [name, members])),
        members,
      } as unknown as NodeBus
      await using served = await serveRest({ more: [service(NodeBus, bus)], place: { worker: self.worker, ...place } })
      const { status, body } = await served.call('GET', '/health/ready')
      expect([status, body]).to.deep.equal([word === 'ready' ? 200 : 503, { status: word }])
    }
  })

  it('is not ready when another node has migrated what it knows in an older version', async () => {
    const difference = { what: 'schema', name: 'conversations', here: '3', there: '4' } as const
    for (const outdated of [[], [difference]]) {
      const cluster: Cluster = { nodes: async () => [], outdated: async () => outdated }
      await using served = await serveRest({ more: [service(Cluster, cluster)] })
      const { status, body } = await served.call('GET', '/health/ready')
      expect([status, body]).to.deep.equal(outdated.length === 0 ? [200, { status: 'ready' }] : [503, { status: 'node_differs' }])
    }
  })

  it('is not ready once the server closes', async () => {
    const served = await serveRest()
    const ready = served.host.slot(Routes).get('health_ready')!
    const closed = served.host.close()
    const reply = await ready.handle!({ params: {}, query: {}, headers: {}, body: undefined }, ctx)
    await closed
    expect([reply.status, reply.body]).to.deep.equal([503, { status: 'closing' }])
  })
})

describe('GET /api/v1/status', () => {
  it('tells the figures of the server, of each provider and of the cache', async () => {
    const detail = { p: { healthy: true, requests: 3 }, q: { healthy: false, error: 'unreachable' } }
    await using served = await serveRest({ checks: { providers: check({ status: 'degraded', detail }) } })
    await served.call('GET', '/health')
    const { status, body } = await served.call('GET', '/api/v1/status')
    expect([status, body]).to.deep.equal([
      200,
      {
        version: '1.2.3',
        uptime_seconds: 0,
        requests_total: 2,
        requests_active: 1,
        providers: detail,
        cache: { enabled: false, size: 0, hit_rate: 0 },
        checks: { providers: { status: 'degraded' } },
      },
    ])
  })

  it('asks a check for figures that no health check asks for', async () => {
    const asked: string[] = []
    const report = (how: string, requests?: number) => async (): Promise<CheckReport> => {
      asked.push(how)
      return { status: 'healthy', detail: { p: { healthy: true, ...(requests === undefined ? {} : { requests }) } } }
    }
    await using served = await serveRest({ checks: { providers: { probe: report('probe'), status: report('status', 7) } } })
    await served.call('GET', '/health')
    expect((await served.call('GET', '/api/v1/status')).body.providers).to.deep.equal({ p: { healthy: true, requests: 7 } })
    expect(asked).to.deep.equal(['probe', 'status'])
  })

  it('tells of a cache that is there', async () => {
    const cache = check({ status: 'healthy', detail: { enabled: true, size: 4, hit_rate: 0.5 } })
    await using served = await serveRest({ checks: { cache } })
    const { body } = await served.call('GET', '/api/v1/status')
    expect(body.cache).to.deep.equal({ enabled: true, size: 4, hit_rate: 0.5 })
  })
})
