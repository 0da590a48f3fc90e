import { definePlugin, Events, hasRole, Host, systemContext } from '@svc/core'
import { Http, JobKinds, Jobs, MetricSources, NodeBus, Peers, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { Announcer } from '@svc/storage-kit/announcer'
import { CANCEL, createJobs, TOPIC } from './service.ts'
import { JOBS_CONFIG } from './settings.ts'
import { SPACE } from './space.ts'

/** Jobs are drained before the server, because they can need it. */
const FIRST = { stage: -50, limitMs: Number.POSITIVE_INFINITY }

/** How often an idle worker of a cluster looks for jobs: the bus wakes it, but can lose a message. */
const IDLE_MS = 2_000

export default definePlugin({
  section: 'jobs',
  config: JOBS_CONFIG,
  requires: { store: Store, host: Host, events: Events, view: JobKinds },
  optional: { peers: Peers, http: Http, bus: NodeBus },
  provides: Jobs,
  async setup(scope, { store, host, events, view, peers, http, bus }) {
    const { config, log, span } = scope
    const lasting = systemContext(scope.signal, 'jobs')
    const report = await host.report(lasting)
    await openSpace(store, SPACE, {}, lasting)
    const holder = `${report.worker}/jobs/`
    const announcer = new Announcer({ bus, topic: TOPIC, log, lasting })
    scope.defer(() => announcer.end())
    const announce = () => announcer.announce()
    const isWoken = bus !== undefined && report.clusterId !== report.serverId
    const idle = isWoken ? { idleMs: IDLE_MS } : {}
    const options = { store, view, config, holder, peers, events, announce, ...idle, log, span, lasting }
    const { jobs, worker, maintenance, metrics } = createJobs(options)
    scope.add(MetricSources, 'jobs', { read: ctx => metrics.read(ctx) })
    const isExecuting = hasRole(report, 'runs') && (config.execute ?? (peers !== undefined || http !== undefined))
    if (!isExecuting) return jobs
    scope.tap(Host.hooks.ready, () => {
      worker.begin()
      maintenance.begin()
      return undefined
    })
    scope.tap(Peers.hooks.message, ({ topic, message }) => {
      if (topic === CANCEL) worker.cancel(String((message as { readonly id?: unknown }).id))
    })
    scope.tap(NodeBus.hooks.message, ({ topic }) => {
      if (topic === TOPIC) worker.wake()
    })
    scope.tap(Peers.hooks.workerExit, exit => worker.workerExited(exit.holder))
    scope.tap(JobKinds.changed, () => worker.wake())
    scope.tap(Host.hooks.closing, ({ limitMs = Infinity }) => worker.drain(Math.min(limitMs, config.drain_s * 1000)), FIRST)
    scope.defer(() => maintenance.end())
    return jobs
  },
})
