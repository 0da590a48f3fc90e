import { definePlugin } from '@svc/core'
import { Chat, ScriptSandbox, Teams, Tools, WorkflowNodes } from '@svc/core/contracts'
import { createGuardedFetch, fetchOptions } from '@svc/safe-fetch'
import { createAgent } from './agent.ts'
import { condition, continueAsNew, createCompute, transform } from './data.ts'
import { createHttp } from './http.ts'
import { human, wait } from './waiting.ts'
import { createTeam, loop, map, parallel, subworkflow } from './children.ts'
import { HTTP_CONFIG } from './settings.ts'
import { createTool } from './tool.ts'

export default definePlugin({
  section: 'workflow_nodes.http',
  config: HTTP_CONFIG,
  requires: { tools: Tools },
  optional: { chat: Chat, sandbox: ScriptSandbox, teams: Teams },
  setup(scope, { tools, chat, sandbox, teams }) {
    const web = scope.use(createGuardedFetch(fetchOptions(scope.config)))
    const [agent, tool, compute, team, http] = [
      createAgent({ chat, tools }),
      createTool(tools, scope.log),
      createCompute(sandbox),
      createTeam(teams),
      createHttp(web),
    ]
    const nodes = {
      agent,
      tool,
      compute,
      condition,
      parallel,
      map,
      loop,
      transform,
      human,
      team,
      subworkflow,
      wait,
      http,
      continue_as_new: continueAsNew,
    }
    for (const [name, node] of Object.entries(nodes)) scope.add(WorkflowNodes, name, node)
  },
})

export type { FetchConfig as HttpConfig } from '@svc/safe-fetch'
