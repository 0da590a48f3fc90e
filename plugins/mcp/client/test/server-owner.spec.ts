import { definePlugin, Events, type Log, type StartSpan } from '@svc/core'
import { type Peers, Store } from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { expect } from 'chai'
import { readServers } from '../src/registry/configured-servers.ts'
import { createMcpService } from '../src/service.ts'
import { hostile } from './support/client-host.ts'

const STORE = new URL('../../../storage/memory/', import.meta.url)
/** This worker has no others. */
const PEERS: Pick<Peers, 'self' | 'ask'> = {
  self: async () => 'self',
  ask: () => {
    throw new Error('there is no other worker')
  },
}

describe('a worker that takes a server', () => {
  it('leaves it when a user disables it meanwhile, and does not keep its lease', async () => {
    let parts: { log: Log; span: StartSpan } | undefined
    const taker = definePlugin({ setup: ({ log, span }) => void (parts = { log, span }) })
    await using host = await testHost([STORE], { give: [{ name: 'test:taker', use: taker }] })
    const store = host.service(Store)
    const asked = Promise.withResolvers<string>()
    const go = Promise.withResolvers<void>()
    const slow: Store = {
      ...store,
      async acquire(lease, ...more) {
        asked.resolve(lease)
        await go.promise
        return store.acquire(lease, ...more)
      },
    }
    const ending = new AbortController()
    const lasting = testContext({ signal: ending.signal })
    const { servers } = await readServers([{ name: 'one', ...hostile() }], '/there/is/no/mcp.yaml')
    const service = await createMcpService({
      ...parts!,
      config: { clients: [], allow_stdio_over_http: false },
      servers,
      store: slow,
      events: host.service(Events),
      sandbox: undefined,
      host: { serverId: 'server', worker: 'worker' },
      peers: PEERS,
      isEager: true,
      recheckMs: 0,
      env: {},
      lasting,
      changed: () => {},
    })
    try {
      const begun = service.begin(lasting)
      const lease = await asked.promise
      await service.clients.setEnabled('one', false, lasting)
      go.resolve()
      await begun
      const states = service.metrics().find(({ name }) => name === 'svc_mcp_client_state')
      expect(states?.values).to.deep.equal([])
      await store.acquire(lease, { holder: 'another', ttlMs: 1_000, waitMs: 0 }, lasting)
    } finally {
      await service.close()
      ending.abort()
    }
  })
})
