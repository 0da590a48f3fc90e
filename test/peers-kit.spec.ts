import { definePlugin, type HostOptions, type PluginRef, startHost, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Store } from '@svc/core/contracts'
import { memoryTransport, openChannel } from '@svc/runtime'
import { SupervisorPeerHub } from '../core/runtime/supervisor/peer-hub.ts'
import { createPeerLink } from '../core/runtime/supervisor/peer-link.ts'
import { openSpace } from '@svc/storage-kit'
import { newPeersSeen, peersKit, peersProbe, service, testHost } from '@svc/testing'
import { workersPlugin } from '../core/runtime/supervisor/workers-plugin.ts'
import { StoreBus } from '../plugins/storage/bus-store/src/bus.ts'
import { SPACE } from '../plugins/storage/bus-store/src/space.ts'
import { pluginFolder } from './support/plugin-folder.ts'

const listener = {
  listen: () => Promise.reject(new Error('this worker does not listen')),
  keep: async () => {},
  kept: async () => undefined,
  start: { kind: 'server' } as const,
}

interface WorkerOptions {
  readonly hub: SupervisorPeerHub
  readonly worker: string
  readonly node: string
  /** The plugins below, and the other options of the host. */
  readonly below?: readonly PluginRef[]
  readonly cluster?: Pick<HostOptions, 'serverId' | 'clusterId'>
}

/** A worker with a host, connected to the hub by a channel in this process. */
async function openWorker({ hub, worker, node, below = [], cluster = {} }: WorkerOptions) {
  const [here, there] = memoryTransport()
  const channel = openChannel(here, { name: worker })
  const supervisor = openChannel(there, { name: 'supervisor' })
  const leave = hub.peer({ id: worker, generation: 1 }, channel, () => true)
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
      ...below,
      { name: 'workers', use: workersPlugin({ ...listener, peers: createPeerLink(supervisor) }, 1, {}, { notifyMs: NOTIFY_MS }) },
      { name: 'probe', use: taps },
    ],
    worker,
    nodeId: node,
    ...cluster,
    log: { level: 'silent' },
  })
  const kill = async () => {
    channel.close()
    supervisor.close()
    leave()
  }
  return { peers: host.service(Peers), node, seen, kill, close: () => host.close() }
}

/** How long a broadcast waits for a worker of another server. */
const NOTIFY_MS = 2_000
/** In tests, a node that does not report is lost after this time. */
const LOST_MS = 1_000

/** The worker of a server of its own, with the bus in this store. `kill` ends all that it does there, without a last word. */
async function openNode(store: Store, at: number) {
  const [worker, node] = [`server${at}.boot.1`, `node${at}`]
  const dying = new AbortController()
  const lasting = systemContext(dying.signal, 'test')
  const bus = definePlugin({
    requires: { answers: PeerAnswers },
    provides: NodeBus,
    setup: ({ hooks, log }, { answers }) =>
      new StoreBus({ store, self: worker, node, answers, hooks, lostMs: LOST_MS, log, lasting }),
  })
  const opened = await openWorker({
    hub: new SupervisorPeerHub({ notifyMs: 300 }),
    worker,
    node,
    below: [service(Store, store), { name: 'test:bus', use: bus }],
    cluster: { serverId: `server${at}`, clusterId: 'cluster' },
  })
  const kill = async () => {
    dying.abort(new Error('lost'))
    await opened.kill()
  }
  return { ...opened, kill, close: () => kill().finally(opened.close) }
}

type Opened = Awaited<ReturnType<typeof openWorker>>
const closeAll = (workers: readonly Opened[]) => Promise.all(workers.map(worker => worker.close().catch(() => {})))

describe('the workers of a server', () => {
  const open = async () => {
    const hub = new SupervisorPeerHub({ notifyMs: 300 })
    const worker = (at: number) => openWorker({ hub, worker: `server.${at}`, node: 'node1' })
    const workers = [await worker(1), await worker(2), await worker(3)] as const
    return { workers, close: () => closeAll(workers) }
  }
  for (const one of peersKit(open)) it(one.title, one.run)
})

describe('the workers of three servers of a cluster, with the bus in a store', () => {
  const open = async () => {
    const memory = await testHost([pluginFolder('store-memory')], { strict: false })
    const store = memory.service(Store)
    await openSpace(store, SPACE, {}, systemContext(new AbortController().signal, 'test'))
    const workers = [await openNode(store, 1), await openNode(store, 2), await openNode(store, 3)] as const
    const close = async () => {
      await closeAll(workers)
      await memory.close()
    }
    return { workers, onSeveralServers: true, close }
  }
  for (const one of peersKit(open)) it(one.title, one.run)
})
