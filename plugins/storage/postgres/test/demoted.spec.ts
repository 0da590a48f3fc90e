import { startPgBouncer, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { audit, put, SPACE, until, writeMany } from './load.ts'
import { ctx, newSchema, storeWith } from './support.ts'

/** A pooler keeps the connections of its clients, so a store meets a demoted primary in the middle of a session. */
describeWith('pgbouncer', 'the store in PostgreSQL behind a pooler that leads to a demoted primary', () => {
  it('writes nothing there (25006), loses nothing, and follows the address to the new primary', async () => {
    await using postgres = await startPostgres({ settings: { max_connections: 60 } })
    await using standby = await postgres.standby({ synchronous: true })
    const address = { port: postgres.port, url: postgres.url }
    await using proxy = await startTcpProxy(address)
    await using pooler = await startPgBouncer(proxy)
    await using store = storeWith({ url: pooler.url, direct_url: proxy.url, schema: newSchema(), wait_ms: 1_000 })
    await store.open(SPACE, ctx)
    await using before = writeMany(store, 'before')
    await until(() => before.outcomes.size > 200)
    await before.end()
    await postgres.kill()
    await standby.promote()
    await postgres.demote(standby)
    // the session of the store has begun on a primary, and is open
    const refused = () => store.batch([put('refused', 1)], {}, ctx).catch((error: { details?: unknown }) => error)
    expect(await refused()).to.have.deep.property('details', { retryable: true, reason: 'read_only' })
    expect(await postgres.log()).to.match(/ERROR: {2}cannot execute .+ in a read-only transaction/)
    await using load = writeMany(store, 'during')
    await until(() => load.outcomes.size > 20)
    expect(new Set(load.outcomes.values())).to.deep.equal(new Set(['STORE_UNAVAILABLE']))
    Object.assign(address, { port: standby.port })
    proxy.cut()
    const began = performance.now()
    await until(async () => (await store.batch([put('again', 1)], {}, ctx).catch(() => undefined)) !== undefined)
    expect(performance.now() - began).to.be.below(5_000)
    await load.end()
    const known = await audit(store, before.outcomes)
    expect(known).to.deep.equal({ done: before.outcomes.size })
    expect((await audit(store, load.outcomes)).STORE_UNSURE).to.equal(undefined)
    expect(await store.get('plain', 'refused', ctx)).to.equal(undefined)
  }).timeout(120_000)
})
