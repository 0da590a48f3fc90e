import { join } from 'node:path'
import { definePlugin, Events, hasRole, Host, svcHome, systemContext } from '@svc/core'
import {
  Checks,
  type DefinedSchedule,
  Http,
  JobKinds,
  Jobs,
  MetricSources,
  NodeBus,
  PeerAnswers,
  Peers,
  ProtectedPaths,
  RunQueue,
  Selection,
  Store,
  WorkflowSchedules,
  Workflows,
} from '@svc/core/contracts'
import { type Publish, publishChange } from '@svc/plugin-kit'
import { createNameLookup, profilesOf, SLOTS } from './checker.ts'
import { openRoots, protectedPathsOf } from './workflow-files.ts'
import { createValidateAnswer, VALIDATE } from './validate-here.ts'
import { createWorkflows } from './service.ts'
import { WORKFLOWS_CONFIG } from './settings.ts'

/** Runs are drained before the server, without a time limit, because their nodes can need the server. */
const FIRST = { stage: -50, limitMs: Number.POSITIVE_INFINITY }

export default definePlugin({
  section: 'workflows',
  config: WORKFLOWS_CONFIG,
  requires: { host: Host, store: Store, queue: RunQueue, events: Events, ...SLOTS },
  optional: { peers: Peers, bus: NodeBus, http: Http, selection: Selection, jobs: Jobs },
  provides: Workflows,
  async setup(scope, { host, tools, modes, teams, http, selection, ...given }) {
    const { config, log, span } = scope
    const lasting = systemContext(scope.signal, 'workflows')
    const [isServer, home] = [given.peers !== undefined || http !== undefined, join(svcHome(), 'workflows')]
    const roots = openRoots([...config.roots, home], config.code)
    const report = await host.report(lasting)
    const publish: Publish = (change, ctx) => publishChange(given.events, log, change, ctx)
    const addSchedule = (name: string, item: DefinedSchedule) => scope.add(WorkflowSchedules, name, item)
    const about = { publish, self: report, config, roots, home, addSchedule, log, span, lasting }
    const lookup = createNameLookup({ tools, modes, teams, profiles: await profilesOf(selection, lasting) })
    const service = await createWorkflows({ ...given, ...about, isServer, takesRuns: hasRole(report, 'runs'), lookup })
    scope.add(Checks, 'workflows', service.check)
    scope.add(ProtectedPaths, 'workflows', await protectedPathsOf(config, home, roots))
    for (const [name, kind] of Object.entries(given.jobs ? service.jobKinds : {})) scope.add(JobKinds, name, kind)
    scope.add(PeerAnswers, VALIDATE, createValidateAnswer(service.workflows))
    scope.add(MetricSources, 'workflows', service.metrics)
    scope.tap(Host.hooks.ready, service.begin)
    scope.tap(NodeBus.hooks.joined, service.onNodes)
    scope.tap(NodeBus.hooks.gone, service.onNodes)
    scope.tap(Peers.hooks.message, ({ topic, message }) => service.onPeerMessage(topic, message))
    scope.tap(Peers.hooks.missed, (_, ctx) => service.onMissed(ctx))
    scope.tap(Host.hooks.closing, ({ limitMs = Infinity }) => service.drain(limitMs), FIRST)
    return service.workflows
  },
})
