import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'

/** Data that the attacker would like to read and change: a collection, a log, a lease and a counter. */
const OWNER = `import { definePlugin, systemContext } from '@svc/core'
import { Counts, Store } from '@svc/core/contracts'
export const SECRETS = { name: 'secrets', version: 1, collections: { secrets: { watched: true, text: { content: { fields: ['text'] } } } }, logs: ['secret_log'] }
export default definePlugin({
  requires: { store: Store, counts: Counts },
  async setup(scope, { store, counts }) {
    const ctx = systemContext(scope.signal)
    await store.open(SECRETS, ctx)
    await store.batch([{ op: 'put', collection: 'secrets', key: 'a', value: 'canary' }, { op: 'append', log: 'secret_log', id: 'a', values: ['canary'] }], {}, ctx)
    await store.acquire('secret', { holder: 'owner', ttlMs: 600_000, waitMs: 0 }, ctx)
    await counts.count('secret', [{ ms: 600_000, limit: 1 }], ctx)
  },
})`

/** Tries every method of the store with names that are not its own. */
const ATTACK = `import { definePlugin } from '@svc/core'
import { Counts, Routes, Store, TextIndex } from '@svc/core/contracts'
const NOTES = { name: 'notes', version: 1, collections: { notes: { watched: true } }, logs: ['note_log'] }
const SECRETS = { name: 'secrets', version: 1, collections: { secrets: { watched: true, text: { content: { fields: ['text'] } } } }, logs: ['secret_log'] }
const { __proto__: _, ...plain } = Store
const ways = (store, counts, texts) => ({
  'opens its space': ctx => store.open(NOTES, ctx),
  'writes its collection': ctx => store.batch([{ op: 'put', collection: 'notes', key: 'a', value: 1 }, { op: 'append', log: 'note_log', id: 'a', values: [1] }], {}, ctx),
  'reads its collection': async ctx => (await store.get('notes', 'a', ctx)).value,
  'ranges over its collection': async ctx => (await store.range('notes', { limit: 9 }, ctx)).records.length,
  'reads its log': async ctx => (await store.read('note_log', 'a', { limit: 9 }, ctx)).length,
  'has its lease': async ctx => {
    const lease = await store.acquire('mine', { holder: 'me', ttlMs: 60_000, waitMs: 0 }, ctx)
    const fence = { lease: lease.lease, fence: lease.fence }
    await store.batch([{ op: 'put', collection: 'notes', key: 'b', value: 1 }], { fence }, ctx)
    await store.renew(fence, 60_000, ctx)
    await store.release(fence, ctx)
    return lease.lease
  },
  'takes the lease of another': async ctx => {
    const { lease, fence } = await store.acquire('secret', { holder: 'me', ttlMs: 60_000, waitMs: 0 }, ctx)
    await store.release({ lease, fence }, ctx)
    return lease
  },
  'counts under the key of another': async ctx => (await counts.count('secret', [{ ms: 60_000, limit: 1 }], ctx)).counted,
  'opens another space': ctx => store.open(SECRETS, ctx),
  'opens a space of a similar name': ctx => store.open({ ...SECRETS, name: 'notes2' }, ctx),
  'opens a space without a name': ctx => store.open({}, ctx),
  'opens nothing': ctx => store.open(undefined, ctx),
  'takes the collection into its space': ctx => store.open({ ...NOTES, version: 2, collections: { secrets: {} } }, ctx),
  'takes the log into its space': ctx => store.open({ ...NOTES, version: 2, logs: ['secret_log'] }, ctx),
  'gets a record': ctx => store.get('secrets', 'a', ctx),
  'searches a collection': ctx => texts.search('secrets', { index: 'content', query: 'canary', limit: 9 }, ctx),
  'ranges over a collection': ctx => store.range('secrets', { limit: 9 }, ctx),
  'reads a log': ctx => store.read('secret_log', 'a', { limit: 9 }, ctx),
  'puts a record': ctx => store.batch([{ op: 'put', collection: 'notes', key: 'c', value: 1 }, { op: 'put', collection: 'secrets', key: 'a', value: 1 }], {}, ctx),
  'deletes a record': ctx => store.batch([{ op: 'delete', collection: 'secrets', key: 'a' }], {}, ctx),
  'appends to a log': ctx => store.batch([{ op: 'append', log: 'secret_log', id: 'a', values: [1] }], {}, ctx),
  'drops a log': ctx => store.batch([{ op: 'drop', log: 'secret_log', id: 'a' }], {}, ctx),
  'migrates a space': ctx => store.batch([{ op: 'migrated', space: 'secrets', version: 9 }], {}, ctx),
  'sends an unknown operation': ctx => store.batch([{ op: 'steal', collection: 'secrets', space: 'secrets' }], {}, ctx),
  'sends a name that is a list': ctx => store.get(['secrets'], 'a', ctx),
  'watches a collection': async ctx => { for await (const change of store.watch('secrets', ctx)) return change },
  'releases the leases of others': ctx => store.releaseHolder('', ctx),
  'takes the lease of a job': ctx => store.acquire('job/x', { holder: 'me', ttlMs: 60_000, waitMs: 0 }, ctx),
  'asks for a prototype': ctx => store.get('__proto__', 'a', ctx),
})
export default definePlugin({
  requires: { store: Store, again: { ...plain, methods: { ...Store.methods } }, counts: Counts, texts: TextIndex },
  setup(scope, { store, again, counts, texts }) {
    scope.add(Routes, 'attack', {
      method: 'GET', path: '/attack', scope: 'read', summary: 'Attacks',
      async handle(_, ctx) {
        const tried = {}
        for (const [key, one] of Object.entries({ store, again }))
          for (const [way, work] of Object.entries(ways(one, counts, texts)))
            tried[key + ': ' + way] = await work(ctx).then(value => ['done', value ?? null], error => [error.code, error.message])
        return { body: tried }
      },
    })
  },
})`

const CONTRIBUTES = { routes: { attack: { method: 'GET', path: '/attack', scope: 'read' } } }
/** What the plugin may do, in the order of the ways above. */
const OWN = 8

describeIsolated('an isolated plugin that names single spaces of the store', function () {
  this.timeout(60_000)
  let attacked: Attacked
  const attack = async () => (await fetch(`${attacked.service.url}/attack`)).json() as Promise<Record<string, [string, unknown]>>
  before(async () => {
    attacked = await startAttacked({
      plugins: [
        { name: 'svc-plugin-owner', code: OWNER, isolation: 'in-process' },
        { name: 'svc-plugin-attack', code: ATTACK, svc: { contributes: CONTRIBUTES, permissions: { spaces: ['notes'] } } },
      ],
    })
  })
  after(() => attacked?.[Symbol.asyncDispose]())

  it('uses these with all its methods, and finds every other refused by name', async () => {
    const tried = Object.entries(await attack())
    for (const [way, [code, value]] of tried) {
      const at = tried.findIndex(([other]) => other === way) % (tried.length / 2)
      if (at < OWN) expect(code, `${way}: ${String(value)}`).to.equal('done')
      else {
        expect(code, `${way}: ${JSON.stringify(value)}`).to.be.oneOf(['NOT_PERMITTED', 'STORE_INVALID'])
        expect(JSON.stringify(value), way).to.not.include('canary')
      }
    }
    const said = Object.fromEntries(tried.map(([way, [, value]]) => [way, value]))
    expect(said['store: reads its collection']).to.equal(1)
    expect(said['store: has its lease']).to.equal('mine')
    expect(said['store: takes the lease of another'], 'a lease of its own').to.equal('secret')
    expect(said['store: counts under the key of another'], 'a counter of its own').to.equal(true)
    expect(said['again: counts under the key of another']).to.equal(false)
    expect(said['store: opens another space']).to.match(/opens the space secrets of the store, but has no permission for it/)
    expect(said['store: gets a record']).to.match(/uses the collection secrets of the store/)
    expect(said['store: takes the collection into its space']).to.match(/"secrets" of space "notes" belongs to space "secrets"/)
  })

  it('is reported and counted by the name of the space', async () => {
    await attack()
    await attacked.service.seen(/svc-plugin-attack tried to use data of the store: secrets, which its manifest does not declare/)
  })

  for (const [title, permissions] of [
    ['no permission for the store', {}],
    ['an empty list', { spaces: [] }],
  ] as const)
    it(`does not start with ${title}`, async () => {
      const failed = await startAttacked({
        plugins: [{ name: 'svc-plugin-greedy', code: ATTACK, svc: { contributes: CONTRIBUTES, permissions } }],
      }).then(
        async item => (await item[Symbol.asyncDispose](), 'it started'),
        (error: Error) => error.message
      )
      expect(failed).to.include('NOT_PERMITTED').and.include('For single spaces of the store')
    })
})
