import { definePlugin, type Log } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { ServerRegistry } from '../src/registry/server-registry.ts'
import { readCatalogue, type CatalogueRecord, type StateRecord, KEYS } from '../src/registry/records.ts'
import type { McpServerSettings } from '../src/registry/configured-servers.ts'

const STORE = new URL('../../../storage/memory/', import.meta.url)
const server: McpServerSettings = { entry: { name: 'one', command: 'one' }, where: 'here', identity: 'i', fingerprint: 'f' }
const catalogue = (hash: string): CatalogueRecord => ({
  hash,
  tools: [{ name: 'echo', description: hash, inputSchema: { type: 'object' }, hash, stripped: [], paramHeaders: [] }],
  problems: [],
})
const record = (hash: string, worker = 'self'): StateRecord => ({
  worker,
  holder: worker,
  leaving: false,
  status: { state: 'connected', since: 0, attempts: 0 },
  catalogue: hash,
  seen: Date.now(),
})

/** Two registries over one store; writes wait while `hold` is on. */
async function openRegistries() {
  let log: Log | undefined
  const ear = definePlugin({ setup: scope => void (log = scope.log) })
  const host = await testHost([STORE], { give: [{ name: 'test:ear', use: ear }] })
  const store = host.service(Store)
  let held: PromiseWithResolvers<void> | undefined
  const slow: Store = {
    ...store,
    async batch(...asked) {
      const done = await store.batch(...asked)
      await held?.promise
      return done
    },
  }
  const lasting = new AbortController()
  const ctx = testContext({ signal: lasting.signal })
  const open = async (of: Store) => {
    const parts = { store: of, serverId: 's', servers: [server], log: log!, shared: true, changed: () => {} }
    const registry = new ServerRegistry(parts)
    await registry.open(ctx)
    return registry
  }
  return {
    own: await open(slow),
    other: await open(store),
    ctx,
    kept: async () => (await readCatalogue(store, KEYS.state(server, 's'), ctx))?.hash,
    hold: () => (held = Promise.withResolvers<void>()),
    async [Symbol.asyncDispose]() {
      lasting.abort()
      await host[Symbol.asyncDispose]()
    },
  }
}

describe('the registry of MCP servers', () => {
  it('has the last list of this worker, though its earlier report comes back after it', async () => {
    await using registries = await openRegistries()
    const { own, ctx } = registries
    own.listed(server, catalogue('first'), 'self')
    await own.report(server, record('first'), undefined, ctx)
    expect(await registries.kept()).to.equal('first')
    const { resolve } = registries.hold()
    const telling = own.report(server, record('first'), undefined, ctx)
    own.listed(server, catalogue('second'), 'self')
    resolve()
    await telling
    expect(own.catalogue(server)?.hash).to.equal('second')
    expect(own.tools(server)?.[0]?.description).to.equal('second')
    await own.report(server, record('second'), undefined, ctx)
    expect(await registries.kept()).to.equal('second')
  })

  it('has the report of the next owner, though this worker has an unreported list', async () => {
    await using registries = await openRegistries()
    const { own, other, ctx } = registries
    own.listed(server, catalogue('untold'), 'self')
    other.listed(server, catalogue('theirs'), 'they')
    await other.report(server, record('theirs', 'they'), undefined, ctx)
    while (own.state(server)?.worker !== 'they') await new Promise(resolve => setImmediate(resolve))
    expect(own.catalogue(server)?.hash).to.equal('theirs')
  })
})
