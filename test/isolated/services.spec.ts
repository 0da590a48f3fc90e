// Not a unit test: starts servers and commands.
import { createHmac } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Client, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { type Service, startService } from '../support/service.ts'
import { writeStranger } from '../support/stranger.ts'
import { until } from '../support/wait.ts'

const SECRET = 'the-key-that-only-the-library-reads'

/** A library of texts, as a stranger writes it: each service under plugins does what it is for. */
const CODE = `import { createHmac } from 'node:crypto'
import { definePlugin, defineTopic, Events, systemContext } from '@svc/core'
import { Cache, CacheAreas, Counts, EventFeed, JobKinds, Jobs, NodeBus, PeerAnswers, Peers, PluginSchedules, Routes, Schedules, Secrets, SettingDefinitions, Settings, Store, TextIndex } from '@svc/core/contracts'

const SPACE = {
  name: 'library', version: 1,
  collections: { library_texts: { text: { content: { fields: ['title', 'body'], filters: ['owner'] } } }, library_visits: {} },
}
const Imported = defineTopic('LIBRARY', 'imported')
const route = (method, path, summary, handle, more = {}) => ({ method, path, summary, scope: method === 'GET' ? 'read' : 'chat', handle, ...more })

export default definePlugin({
  requires: { bus: NodeBus, cache: Cache, counts: Counts, events: Events, feed: EventFeed, jobs: Jobs, schedules: Schedules, secrets: Secrets, settings: Settings, store: Store, texts: TextIndex },
  optional: { peers: Peers },
  async setup(scope, { bus, cache, counts, events, feed, jobs, peers, schedules, secrets, settings, store, texts }) {
    const own = systemContext(scope.signal)
    await store.open(SPACE, own)
    const seen = []
    void (async () => { for await (const { type, data, worker } of feed.subscribe({ categories: ['LIBRARY'] }, own)) seen.push({ type, data, worker }) })().catch(() => {})

    scope.add(SettingDefinitions, 'library', { description: 'Search', schema: { type: 'object', properties: { hits: { type: 'integer', minimum: 1, maximum: 50, default: 10 } } } })
    scope.add(CacheAreas, 'library', { description: 'Searches', ttlMs: 60_000, maxEntries: 100, maxBytes: 100_000 })
    scope.add(JobKinds, 'library.import', {
      description: 'Imports texts', scope: 'chat', backoff: { firstMs: 10, maxMs: 10 },
      async *run({ input, fence, checkpoint = 0 }, ctx) {
        const owner = ctx.principal.id
        for (let at = checkpoint; at < input.texts.length; at++) {
          const value = { owner, ...input.texts[at] }
          await store.batch([{ op: 'put', collection: 'library_texts', key: owner + '/' + value.title, value }], { fence }, ctx)
          yield { type: 'progress', progress: at + 1, total: input.texts.length }
          yield { type: 'checkpoint', value: at + 1 }
          if (at === 0 && checkpoint === 0) throw new Error('the first attempt fails after the first text')
        }
        await cache.clear('library', ctx)
        await events.publish(Imported, { texts: input.texts.length }, ctx)
        yield { type: 'result', value: { imported: input.texts.length - checkpoint } }
      },
    })
    scope.add(JobKinds, 'library.visit', {
      description: 'Notes that it was here',
      async *run({ id, schedule }, ctx) {
        await store.batch([{ op: 'put', collection: 'library_visits', key: String(schedule.tick), value: id, ifVersion: 0 }], {}, ctx)
      },
    })
    scope.add(PluginSchedules, 'library-visits', { everyMs: 1000, job: { kind: 'library.visit' } })

    scope.add(Routes, 'import', route('POST', '/library/import', 'Imports texts', async ({ body }, ctx) => {
      const { counted } = await counts.count('import ' + ctx.principal.id, [{ ms: 60_000, limit: 2 }], ctx)
      if (!counted) return { status: 429, body: { refused: true } }
      const { id } = await jobs.add({ kind: 'library.import', input: body }, ctx)
      const { state, result, attempts, progress } = await jobs.settled(id, 20_000, ctx)
      return { body: { state, result, attempts, progress } }
    }, { body: { type: 'object' } }))
    scope.add(Routes, 'search', route('GET', '/library/search', 'Searches texts', async ({ query }, ctx) => {
      const { values: { hits } } = await settings.effective('library', [], ctx)
      const key = JSON.stringify([ctx.principal.id, hits, query.q])
      let found = await cache.get('library', key, ctx)
      const cached = found !== undefined
      if (!cached) {
        const page = await texts.search('library_texts', { index: 'content', query: query.q, equals: [ctx.principal.id], limit: hits }, ctx)
        found = page.hits.map(({ record }) => record.value.title)
        await cache.put('library', key, found, ctx)
      }
      const { value } = await secrets.read('library_key', ctx)
      return { body: { found, cached, signature: createHmac('sha256', value).update(JSON.stringify(found)).digest('hex') } }
    }, { query: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } }))
    scope.add(Routes, 'library_flood', route('POST', '/library/flood', 'Publishes large events', async (_, ctx) =>
      ({ body: { answer: await events.publish(Imported, { texts: 0, text: 'x'.repeat(100_000) }, ctx).then(() => 'published', error => error.code) } })))
    scope.add(Routes, 'library_many', route('POST', '/library/many', 'Publishes many events', async (_, ctx) => {
      const answers = {}
      for (let at = 0; at < 3000; at++) {
        const answer = await events.publish(Imported, { texts: 0 }, ctx).then(() => 'published', error => error.code)
        answers[answer] = (answers[answer] ?? 0) + 1
      }
      return { body: answers }
    }))
    scope.add(Routes, 'library_forge', route('POST', '/library/forge', 'Publishes events of svc', async ({ body }, ctx) =>
      ({ body: await Promise.all(body.topics.map(([category, type]) => events.publish({ category, type }, { subject: 'tokens/root' }, ctx).then(() => 'published', error => error.code))) }), { body: { type: 'object' } }))
    scope.add(Routes, 'library_settings', route('POST', '/library/settings', 'Changes settings', async ({ body }, ctx) =>
      ({ body: await settings.change('library', { principal: ctx.principal.id }, body, undefined, ctx).catch(error => ({ refused: error.code })) }), { body: { type: 'object' } }))
    scope.add(Routes, 'library_state', route('GET', '/library/state', 'Shows events and visits', async (_, ctx) => {
      const { records } = await store.range('library_visits', { limit: 100 }, own)
      const [schedule] = await schedules.list(own)
      return { body: { seen, visits: records.map(({ key }) => Number(key)), schedule } }
    }))

    const heard = []
    const hear = way => ({ topic, message, from }) => { if (topic === 'library.news') heard.push({ way, ...message, ...(from ? { from } : {}) }) }
    scope.tap(Peers.hooks.message, hear('peers'))
    scope.tap(NodeBus.hooks.message, hear('bus'))
    scope.add(PeerAnswers, 'library.heard', { async *answer(_, ctx) { yield { self: await peers.self(ctx), heard } } })
    scope.add(Routes, 'library_announce', route('POST', '/library/announce', 'Tells all workers', async ({ body }, ctx) => {
      await peers.broadcast('library.news', body, ctx)
      await bus.publish('library.news', body, ctx)
      return { body: { self: await peers.self(ctx) } }
    }, { body: { type: 'object' } }))
    scope.add(Routes, 'library_heard', route('GET', '/library/heard', 'Asks all workers what they have heard', async (_, ctx) => {
      const found = {}
      for (const { worker } of await bus.members(ctx))
        for (const [way, answer] of [['peers', peers.ask(worker, 'library.heard', null, ctx)], ['bus', bus.call(worker, 'library.heard', null, ctx)]])
          for await (const { self, heard } of answer) found[self] = { ...found[self], [way]: heard }
      return { body: found }
    }))
    scope.add(Routes, 'library_permits', route('POST', '/library/permits', 'Takes permits of both services', async (_, ctx) =>
      ({ body: { peers: await peers.acquire('library', 3, own), bus: await bus.acquire('library.bus', 2, own) } })))
  },
})`

const route = (method: string, path: string) => ({ method, path, scope: method === 'GET' ? 'read' : 'chat' })
const MANIFEST = {
  kind: 'routes',
  contributes: {
    cache_areas: ['library'],
    job_kinds: ['library.import', 'library.visit'],
    peer_answers: ['library.heard'],
    plugin_schedules: ['library-visits'],
    routes: {
      import: route('POST', '/library/import'),
      search: route('GET', '/library/search'),
      library_flood: route('POST', '/library/flood'),
      library_many: route('POST', '/library/many'),
      library_forge: route('POST', '/library/forge'),
      library_settings: route('POST', '/library/settings'),
      library_state: route('GET', '/library/state'),
      library_announce: route('POST', '/library/announce'),
      library_heard: route('GET', '/library/heard'),
      library_permits: route('POST', '/library/permits'),
    },
    setting_definitions: ['library'],
  },
  permissions: {
    spaces: ['library'],
    secrets: ['library_key'],
    services: ['event_feed', 'events', 'jobs', 'node_bus', 'peers', 'schedules'],
    hooks: ['peers.message', 'node_bus.message'],
  },
}
const TEXTS = ['The whale', 'A white whale', 'The sea'].map(title => ({ title, body: `It tells of ${title.toLowerCase()}` }))

interface Found {
  readonly found: readonly string[]
  readonly cached: boolean
  readonly signature: string
}
interface LibraryState {
  readonly seen: readonly { readonly type: string; readonly data: object; readonly worker: string }[]
  readonly visits: readonly number[]
  readonly schedule: { readonly name: string; readonly origin: string }
}

/** What each worker has heard, as each of two services answers it. */
interface Heard {
  readonly [worker: string]: { readonly peers: readonly object[]; readonly bus: readonly object[] }
}

describeWith('bubblewrap', 'a plugin that is installed as by default, and uses every service for plugins', function () {
  this.timeout(120_000)
  let folder: string
  let home: string
  let service: Service
  let client: Client
  const get = async <T>(path: string) => (await client.get(path)).body as T
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-library-'))
    home = join(folder, 'home')
    await mkdir(home)
    const secrets = { sources: { library_key: { env: 'LIBRARY_KEY' } } }
    await writeFile(
      join(folder, 'svc.config.json'),
      JSON.stringify({ secrets, server: { workers: 2 }, cluster: { name: 'library' } })
    )
    await writeStranger(folder, { name: 'svc-plugin-library', svc: MANIFEST, code: CODE })
    const env = { LIBRARY_KEY: SECRET }
    const { code, out, err } = await runSvc(['plugins', 'install', './svc-plugin-library', '--yes'], { home, cwd: folder, env })
    expect(code, `${out}\n${err}`).to.equal(0)
    service = await startService({ home, cwd: folder, env })
    client = createClient(service.url, { keepAlive: false })
  })
  after(async () => {
    client?.close()
    await service?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 10 })
  })

  it('runs in a process of its own', async () => {
    const { out, err } = await runSvc(['plugins', 'info', 'svc-plugin-library', '--json'], { home, cwd: folder })
    expect(out, err).to.match(/"isolation": ?"process"/)
  })

  it('imports texts by a job that goes on after a failure, and limits imports by exact counts', async () => {
    const tried = await Promise.all([1, 2, 3, 4].map(() => client.post('/library/import', { texts: TEXTS })))
    expect(tried.map(({ status }) => status)).to.have.members([200, 200, 429, 429])
    for (const { body } of tried.filter(({ status }) => status === 200))
      expect(body).to.deep.include({ state: 'completed', attempts: 2, result: { imported: 2 } })
  })

  it('finds texts, remembers searches, obeys the settings of the caller, and signs with its secret', async () => {
    const search = () => get<Found>('/library/search?q=whale')
    // each of the two workers has its own memory
    const all = [await search(), await search(), await search(), await search()]
    for (const { found, signature } of all) {
      expect(found).to.have.members(['The whale', 'A white whale'])
      expect(signature).to.equal(createHmac('sha256', SECRET).update(JSON.stringify(found)).digest('hex'))
    }
    expect([all[0]?.cached, all.some(({ cached }) => cached)]).to.deep.equal([false, true])
    expect((await client.post('/library/settings', { hits: 'many' })).body).to.deep.equal({ refused: 'SETTINGS_INVALID' })
    expect((await client.post('/library/settings', { hits: 1 })).body).to.deep.include({ values: { hits: 1 } })
    expect((await search()).found).to.have.lengthOf(1)
  })

  it('cannot publish events of svc, such as changes that were not made', async () => {
    const topics = [
      ['AUDIT', 'token_created'],
      ['AUDIT', 'anything'],
      ['LIBRARY', 'turn_completed'],
      ['CHAT', 'library_visited'],
      ['LIBRARY_TRIES', 'tried'],
    ]
    const { body } = await client.post('/library/forge', { topics })
    expect(body).to.deep.equal([...topics.slice(1).map(() => 'NOT_PERMITTED'), 'published'])
  })

  it('cannot fill the memory of slow readers with large events', async () => {
    expect((await client.post('/library/flood', {})).body).to.deep.equal({ answer: 'EVENT_TOO_LARGE' })
  })

  it('receives its events from all workers, and its schedule runs once at a time', async () => {
    const state = () => get<LibraryState>('/library/state')
    const { seen, visits, schedule } = await until(state, ({ visits, seen }) => visits.length >= 3 && seen.length === 2)
    expect(seen[0]).to.deep.include({ type: 'imported', data: { texts: 3 } })
    expect(new Set(visits).size).to.equal(visits.length)
    expect(visits.every(tick => tick % 1_000 === 0)).to.equal(true)
    expect(schedule).to.include({ name: 'library-visits', origin: 'plugin' })
    expect(service.output()).to.not.include(SECRET)
  })

  it('tells its other workers news, asks each of them, and shares permits with them', async () => {
    // the server is ready with its first worker
    const answer = () => get<Heard>('/library/heard')
    await until(answer, all => Object.keys(all).length === 2)
    const { self } = (await client.post('/library/announce', { news: 'open' })).body as { self: string }
    const heard = await until(answer, all => Object.values(all).flatMap(({ bus }) => bus).length === 3)
    const other = Object.keys(heard).find(worker => worker !== self)!
    const announced = { way: 'peers', news: 'open' }
    expect(Object.keys(heard)).to.have.lengthOf(2)
    for (const way of ['peers', 'bus'] as const) {
      expect(heard[self]?.[way]).to.deep.equal([announced])
      expect(heard[other]?.[way]).to.have.deep.members([announced, { way: 'bus', news: 'open', from: self }])
    }
    const taken = await Promise.all(Array.from({ length: 8 }, () => client.post('/library/permits', {})))
    const permits = taken.map(({ body }) => body as { peers: boolean; bus: boolean })
    expect([permits.filter(({ peers }) => peers).length, permits.filter(({ bus }) => bus).length]).to.deep.equal([3, 2])
  })

  it('cannot push out the events of others with many of its own', async () => {
    const began = performance.now()
    const { body } = await client.post('/library/many', {})
    const seconds = Math.ceil((performance.now() - began) / 1000) + 1
    expect(body).to.have.property('RATE_LIMITED').that.is.above(0)
    expect(body)
      .to.have.property('published')
      .that.is.within(500, 500 * seconds)
  })
})
