import { startHost, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { expect } from 'chai'
import {
  isOutvoted,
  NODE_RECORDS,
  NODE_SPACE,
  type NodeRecord,
  nodesOf,
  readRecords,
  recordKey,
  serviceDifferences,
  servicesIn,
} from '../supervisor/node-services.ts'

const IN_STORE = { bus: 'bus-postgres', counts: 'store-postgres', redis: '' }
const IN_REDIS = { bus: 'bus-redis', counts: 'counts-redis', redis: 'r1' }

const record = (node: string, since: number, services: object): NodeRecord => ({
  worker: `${node}.s.1`,
  node,
  host: 'h',
  startedAt: since,
  since,
  seenAt: since,
  ...IN_STORE,
  ...services,
})

describe('the services that nodes share', () => {
  it('are those of most nodes, and of two halves those of the oldest node', () => {
    const [a, b, c] = [record('a', 1, IN_STORE), record('b', 2, IN_REDIS), record('c', 3, IN_REDIS)]
    const cases = [
      [a, [], false],
      [a, [b], false],
      [b, [a], true],
      [a, [b, c], true],
      [b, [a, c], false],
      [c, [b, a], false],
      // all have the same age: exactly one waits
      [record('a', 1, IN_STORE), [record('b', 1, IN_REDIS)], false],
      [record('b', 1, IN_REDIS), [record('a', 1, IN_STORE)], true],
    ] as const
    for (const [own, others, expected] of cases) expect(isOutvoted(own, others), JSON.stringify([own, others])).to.equal(expected)
  })

  it('differ by plugin and by Redis server, as far as both know it', () => {
    const named = (other: object) => serviceDifferences(IN_REDIS, { ...IN_REDIS, ...other }).map(({ name }) => name)
    expect(named({})).to.deep.equal([])
    expect(named({ redis: 'r2' })).to.deep.equal(['redis'])
    expect(named({ redis: '' })).to.deep.equal([])
    expect(named(IN_STORE)).to.deep.equal(['node_bus', 'counts'])
    expect(named({ counts: 'store-postgres' })).to.deep.equal(['counts'])
  })

  it('are those of the newest worker of a node', () => {
    const [old, fresh] = [record('a', 1, IN_STORE), { ...record('a', 2, IN_REDIS), worker: 'a.s.2' }]
    for (const records of [
      [old, fresh],
      [fresh, old],
    ])
      expect(nodesOf(records)).to.deep.equal([fresh])
  })

  it('are read from records of this cluster that are whole and not older than 35 s', async () => {
    await using host = await startHost({ plugins: ['@svc/plugin-store-memory'], from: [import.meta.url] })
    const [store, ctx] = [host.service(Store), systemContext(new AbortController().signal, 'test')]
    await store.open(NODE_SPACE, ctx)
    const put = (cluster: string, key: string, value: object) =>
      store.batch([{ op: 'put', collection: NODE_RECORDS, key: recordKey(cluster, key), value: { ...value } }], {}, ctx)
    await put('shop', 'a', record('a', 100_000, IN_STORE))
    await put('shop', 'b', record('b', 64_000, IN_STORE))
    await put('shop/2', 'c', record('c', 100_000, IN_STORE))
    await put('shop', 'd', { ...record('d', 100_000, IN_STORE), bus: { $ne: 1 } })
    await put('shop', 'e', { ...record('e', 100_000, IN_STORE), host: 'x'.repeat(100_000) })
    await put('shop', 'f', [])
    const { live, lost } = await readRecords(store, 'shop', 100_000, ctx)
    expect(live.map(({ node }) => node)).to.deep.equal(['a'])
    expect(lost.map(({ node }) => node)).to.deep.equal(['b'])
  })

  it('come from the plugin that takes the place of the store', () => {
    const plugin = (name: string, more: object) =>
      ({ name, state: 'running', requires: [], ...more }) as unknown as Parameters<typeof servicesIn>[0]['plugins'][number]
    const store = plugin('store', { provides: 'store', alsoProvides: ['counts', 'store_counts'] })
    const bus = plugin('bus', { provides: 'node_bus', requires: ['store'] })
    const counts = plugin('counts-redis', { provides: 'counts', requires: ['redis'] })
    expect(servicesIn({ plugins: [store, bus] })).to.deep.equal({ bus: 'bus', counts: 'store', usesRedis: false })
    expect(servicesIn({ plugins: [store, bus, counts] })).to.deep.equal({ bus: 'bus', counts: 'counts-redis', usesRedis: true })
  })
})
