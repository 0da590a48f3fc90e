import { join, resolve } from 'node:path'
import { definePlugin, Host, svcHome, systemContext } from '@svc/core'
import { Modes, ProtectedPaths, Store, TeamDefinitions, Teams, Tools, WorkflowNodes, Workflows } from '@svc/core/contracts'
import { durationMs } from '@svc/workflow-lang'
import { createTeams, TEAM_NODE } from './teams.ts'
import { createDelegate, createOffer } from './delegate.ts'
import { TeamFiles } from './files.ts'
import { TeamLibrary } from './library.ts'
import { TEAMS_CONFIG } from './settings.ts'
import { createTeamNode } from './team-node.ts'
import { openTeamRuns } from './team-runs.ts'

export default definePlugin({
  section: 'teams',
  config: TEAMS_CONFIG,
  requires: { workflows: Workflows, slot: TeamDefinitions, store: Store, tools: Tools, modes: Modes },
  provides: Teams,
  async setup(scope, { workflows, slot, store, tools, modes }) {
    const { roots, runs: kept, delegate_wait: wait, writable_by_tools: writable } = scope.config
    const library = new TeamLibrary({
      slot,
      files: new TeamFiles([...roots, join(svcHome(), 'teams')]),
      known: { tools: () => tools.names(), modes: () => modes.names() },
      add: (name, definition) => scope.add(TeamDefinitions, name, definition),
    })
    const bounds = { keep: kept.keep, keepMs: durationMs(kept.keep_for)! }
    const runs = await openTeamRuns({ store, workflows, ...bounds, log: scope.log }, systemContext(scope.signal, 'teams'))
    const { service, delegate } = createTeams(library, workflows, runs)
    if (!writable)
      scope.add(ProtectedPaths, 'teams', {
        paths: roots.map(root => resolve(root)),
        owner: 'the teams of this server',
        hint: 'Set teams.writable_by_tools to true',
      })
    const parts = { delegate, workflows, waitMs: durationMs(wait)! }
    const offer = createOffer(slot, known => scope.add(Tools, 'delegate', createDelegate(parts, known)))
    scope.add(WorkflowNodes, TEAM_NODE, createTeamNode(runs))
    scope.tap(TeamDefinitions.changed, () => offer())
    // after all plugins, because a file must not take the name of a plugin's team
    scope.tap(Host.hooks.ready, async () => {
      await library.look()
      return undefined
    })
    return service
  },
})
