import { definePlugin, startHost } from '@svc/core'
import { PeerAnswers, Peers } from '@svc/core/contracts'
import { memoryTransport, openChannel } from '@svc/runtime'
import { SupervisorPeerHub } from '../core/runtime/supervisor/peer-hub.ts'
import { createPeerLink } from '../core/runtime/supervisor/peer-link.ts'
import { newPeersSeen, peersKit, peersProbe, type PeerUnderTest } from '@svc/testing'
import { workersPlugin } from '../core/runtime/supervisor/workers-plugin.ts'

const listener = {
  listen: () => Promise.reject(new Error('this worker does not listen')),
  keep: async () => {},
  kept: async () => undefined,
}

const NODE = 'node1'

/** A worker with a host, connected to the hub by a channel in this process. */
async function openWorker(hub: SupervisorPeerHub, at: number): Promise<PeerUnderTest & { close(): Promise<void> }> {
  const [here, there] = memoryTransport()
  const channel = openChannel(here, { name: `worker ${at}` })
  const supervisor = openChannel(there, { name: 'supervisor' })
  const id = `server.${at}`
  const leave = hub.peer({ id, generation: 1 }, channel, () => true)
  const seen = newPeersSeen()
  const probe = peersProbe(seen)
  const taps = definePlugin({
    requires: { peers: Peers },
    setup(scope) {
      scope.tap(Peers.hooks.message, probe.message, { limitMs: Number.POSITIVE_INFINITY })
      scope.tap(Peers.hooks.metrics, probe.metrics)
      scope.tap(Peers.hooks.inherit, probe.inherit)
      scope.tap(Peers.hooks.workerExit, probe.workerExit)
      scope.add(PeerAnswers, 'echo', { answer: probe.echo })
    },
  })
  const host = await startHost({
    plugins: [
      { name: 'workers', use: workersPlugin({ ...listener, peers: createPeerLink(supervisor) }, 1) },
      { name: 'probe', use: taps },
    ],
    worker: id,
    nodeId: NODE,
    log: { level: 'silent' },
  })
  const kill = async () => {
    channel.close()
    supervisor.close()
    leave()
  }
  return { peers: host.service(Peers), node: NODE, seen, kill, close: () => host.close() }
}

describe('the workers of a server', () => {
  const open = async () => {
    const hub = new SupervisorPeerHub({ notifyMs: 300 })
    const workers = [await openWorker(hub, 1), await openWorker(hub, 2), await openWorker(hub, 3)] as const
    return { workers, close: () => Promise.all(workers.map(worker => worker.close().catch(() => {}))) }
  }
  for (const one of peersKit(open)) it(one.title, one.run)
})
