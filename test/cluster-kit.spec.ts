import { definePlugin, startHost } from '@svc/core'
import { Cluster, Store } from '@svc/core/contracts'
import { memoryTransport, openChannel } from '@svc/runtime'
import { clusterKit, type ClusterNodeUnderTest, KIT_ADDRESSES } from '@svc/testing'
import { SupervisorPeerHub } from '../core/runtime/supervisor/peer-hub.ts'
import { createPeerLink } from '../core/runtime/supervisor/peer-link.ts'
import { workersPlugin } from '../core/runtime/supervisor/workers-plugin.ts'

const listener = {
  listen: () => Promise.reject(new Error('this worker does not listen')),
  keep: async () => {},
  kept: async () => undefined,
  start: { kind: 'server' } as const,
}

/** A server with one worker, over a store that it shares with the others. */
async function openNode(store: Store, at: number, address: string): Promise<ClusterNodeUnderTest> {
  const [here, there] = memoryTransport()
  const channel = openChannel(here, { name: `worker ${at}` })
  const supervisor = openChannel(there, { name: 'supervisor' })
  const [node, serverId] = [`node${at}`, `node${at}.boot`]
  const worker = `${serverId}.1`
  new SupervisorPeerHub().peer({ id: worker, generation: 1 }, channel, () => true)
  const host = await startHost({
    plugins: [
      { name: 'store', use: definePlugin({ provides: Store, setup: () => store }) },
      { use: '@svc/plugin-bus-store' },
      { name: 'workers', use: workersPlugin({ ...listener, peers: createPeerLink(supervisor) }, 1, { kit: { address } }) },
    ],
    from: [import.meta.url],
    worker,
    serverId,
    nodeId: node,
    clusterId: 'kit',
    log: { level: 'silent' },
  })
  let stopped: Promise<unknown> | undefined
  const stop = () =>
    (stopped ??= host.close().then(() => {
      channel.close()
      supervisor.close()
    }))
  return { cluster: host.service(Cluster), node, worker, stop }
}

describe('the nodes of a cluster', () => {
  const open = async () => {
    const host = await startHost({ plugins: ['@svc/plugin-store-memory'], from: [import.meta.url] })
    const store = host.service(Store)
    const [same, other] = KIT_ADDRESSES
    const nodes = [await openNode(store, 1, same), await openNode(store, 2, same), await openNode(store, 3, other)] as const
    return {
      nodes,
      async close() {
        for (const node of nodes) await node.stop()
        await host.close()
      },
    }
  }
  for (const one of clusterKit(open)) it(one.title, one.run)
})
