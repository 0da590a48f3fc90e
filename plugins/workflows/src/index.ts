import { join } from 'node:path'
import { definePlugin, Events, Host, svcHome, systemUse } from '@svc/core'
import {
  Checks,
  MetricSources,
  Modes,
  Peers,
  RunEnded,
  RunQueue,
  Store,
  TeamDefinitions,
  Tools,
  WorkflowDefinitions,
  WorkflowNodes,
  Workflows,
} from '@svc/core/contracts'
import { groundOf } from './ground.ts'
import { createWorkflows } from './service.ts'
import { WORKFLOWS_CONFIG } from './settings.ts'

/** Runs are drained before the server is: what they do may need it. */
const FIRST = -50

export default definePlugin({
  section: 'workflows',
  config: WORKFLOWS_CONFIG,
  requires: {
    store: Store,
    queue: RunQueue,
    events: Events,
    types: WorkflowNodes,
    definitions: WorkflowDefinitions,
    tools: Tools,
    modes: Modes,
    teams: TeamDefinitions,
  },
  optional: { peers: Peers },
  provides: Workflows,
  async setup(scope, { events, tools, modes, teams, ...given }) {
    const lasting = systemUse(scope.signal, 'workflows')
    const ground = groundOf({ tools, modes, teams })
    const ended = (
      run: string,
      { workflow, status, error, createdAt, updatedAt }: Parameters<Parameters<typeof createWorkflows>[0]['ended']>[1]
    ) =>
      void events.publish(
        RunEnded,
        { run, workflow, status, error_code: error?.code ?? null, duration: (updatedAt - createdAt) / 1000 },
        lasting
      )
    const { log, config } = scope
    const service = await createWorkflows({
      ...given,
      ground,
      config,
      homeRoot: join(svcHome(), 'workflows'),
      ended,
      log,
      lasting,
    })
    scope.add(Checks, 'workflows', service.check)
    scope.add(MetricSources, 'workflows', service.metrics)
    scope.tap(Host.hooks.ready, () => {
      if (given.peers) service.begin()
      return undefined
    })
    scope.tap(Peers.hooks.told, ({ topic, message }) => service.told(topic, message))
    scope.tap(Host.hooks.closing, how => service.drain(how.limitMs ?? Number.POSITIVE_INFINITY), {
      stage: FIRST,
      limitMs: Number.POSITIVE_INFINITY,
    })
    return service.workflows
  },
})
