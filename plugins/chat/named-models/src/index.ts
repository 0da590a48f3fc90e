import { definePlugin, systemContext } from '@svc/core'
import { Chat, ModelAliases, ModelCalls, NamedModels, Providers, Selection, Store, Teams, Workflows } from '@svc/core/contracts'
import { createAgents } from './agents.ts'
import { createHiddenSteps, SPACE } from './hidden-steps.ts'
import { createNamedModels } from './named-models.ts'
import { createNames } from './names.ts'

/** Models and agents by the names that clients send. */
export default definePlugin({
  requires: { modelCalls: ModelCalls, providers: Providers, aliases: ModelAliases, selection: Selection, store: Store },
  optional: { chat: Chat, teams: Teams, workflows: Workflows },
  provides: NamedModels,
  async setup({ log, signal }, { modelCalls, store, chat, teams, workflows, ...sources }) {
    await store.open(SPACE, systemContext(signal, 'named models'))
    const names = createNames({ ...sources, teams, workflows, log })
    const agents = createAgents({ modelCalls, chat, teams, workflows, hidden: createHiddenSteps(store, log) })
    return createNamedModels(names, modelCalls, agents)
  },
})
