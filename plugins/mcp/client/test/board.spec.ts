import { definePlugin, type Log } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { testHost, testUse } from '@svc/testing'
import { expect } from 'chai'
import { ServerRegistry } from '../src/registry/server-registry.ts'
import { readCatalogue, type CatalogueRecord, type StateRecord, stateKey } from '../src/registry/records.ts'
import type { Server } from '../src/registry/configured-servers.ts'

const STORE = new URL('../../../storage/memory/', import.meta.url)
const server: Server = { entry: { name: 'one', command: 'one' }, where: 'here', identity: 'i', fingerprint: 'f' }
const catalogue = (hash: string): CatalogueRecord => ({
  hash,
  tools: [{ name: 'echo', description: hash, inputSchema: { type: 'object' }, hash, stripped: [], paramHeaders: [] }],
  faults: [],
})
const note = (hash: string, worker = 'self'): StateRecord => ({
  worker,
  holder: worker,
  leaving: false,
  status: { state: 'connected', since: 0, attempts: 0 },
  catalogue: hash,
  seen: Date.now(),
})

/** Two boards over one store; writes wait while `hold` is on. */
async function openBoards() {
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
  const use = testUse({ signal: lasting.signal })
  const open = async (of: Store) => {
    const parts = { store: of, serverId: 's', servers: [server], log: log!, shared: true, changed: () => {} }
    const board = new ServerRegistry(parts)
    await board.open(use)
    return board
  }
  return {
    own: await open(slow),
    other: await open(store),
    use,
    kept: async () => (await readCatalogue(store, stateKey('s', server), use))?.hash,
    hold: () => (held = Promise.withResolvers<void>()),
    async [Symbol.asyncDispose]() {
      lasting.abort()
      await host[Symbol.asyncDispose]()
    },
  }
}

describe('the board of tool servers', () => {
  it('has what its worker has listed last, though what it told before comes back after that', async () => {
    await using boards = await openBoards()
    const { own, use } = boards
    own.listed(server, catalogue('first'), 'self')
    await own.report(server, note('first'), undefined, use)
    expect(await boards.kept()).to.equal('first')
    const { resolve } = boards.hold()
    const telling = own.report(server, note('first'), undefined, use)
    own.listed(server, catalogue('second'), 'self')
    resolve()
    await telling
    expect(own.catalogue(server)?.hash).to.equal('second')
    expect(own.tools(server)?.[0]?.description).to.equal('second')
    await own.report(server, note('second'), undefined, use)
    expect(await boards.kept()).to.equal('second')
  })

  it('has what the next owner tells, though its worker has listed something that it never told', async () => {
    await using boards = await openBoards()
    const { own, other, use } = boards
    own.listed(server, catalogue('untold'), 'self')
    other.listed(server, catalogue('theirs'), 'they')
    await other.report(server, note('theirs', 'they'), undefined, use)
    while (own.state(server)?.worker !== 'they') await new Promise(resolve => setImmediate(resolve))
    expect(own.catalogue(server)?.hash).to.equal('theirs')
  })
})
