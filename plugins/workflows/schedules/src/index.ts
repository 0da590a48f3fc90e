import { definePlugin, hasRole, Host, systemContext } from '@svc/core'
import { Http, Jobs, Peers, PluginSchedules, Schedules, Store, WorkflowSchedules } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { configProblems } from './definitions.ts'
import { createSchedules } from './service.ts'
import { SCHEDULES_CONFIG } from './settings.ts'
import { SPACE } from './space.ts'

/** Before jobs are drained. */
const FIRST = { stage: -60 }

export default definePlugin({
  section: 'schedules',
  config: SCHEDULES_CONFIG,
  check: async config => configProblems(config),
  requires: { host: Host, store: Store, jobs: Jobs, view: PluginSchedules, workflows: WorkflowSchedules },
  optional: { peers: Peers, http: Http },
  provides: Schedules,
  async setup(scope, { host, store, jobs, view, workflows, peers, http }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'schedules')
    await openSpace(store, SPACE, {}, lasting)
    const isServer = peers !== undefined || http !== undefined
    const isExecuting = hasRole(await host.report(lasting), 'runs') && (config.execute ?? isServer)
    const own = createSchedules({ store, jobs, view, workflows, config, log, lasting, isExecuting })
    if (!isExecuting) return own.schedules
    scope.tap(Host.hooks.ready, () => own.begin())
    scope.tap(PluginSchedules.changed, () => own.changed())
    scope.tap(WorkflowSchedules.changed, () => own.changed())
    scope.tap(Host.hooks.closing, () => own.end(), FIRST)
    scope.defer(() => own.end())
    return own.schedules
  },
})
