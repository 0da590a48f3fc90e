import { definePlugin, Host, systemContext } from '@svc/core'
import { Chat, Conversations, Modes, Pipes, ProtectedPaths, Providers, Selection, Store, Tools } from '@svc/core/contracts'
import { ACP_CONFIG } from './settings.ts'

/** Serves code editors over the Agent Client Protocol. `svc acp` connects the pipe to its standard input and output. */
export default definePlugin({
  section: 'acp',
  config: ACP_CONFIG,
  requires: {
    host: Host,
    chat: Chat,
    conversations: Conversations,
    selection: Selection,
    store: Store,
    tools: Tools,
    modes: Modes,
    providers: Providers,
    protectedPaths: ProtectedPaths,
  },
  setup(scope, { host, ...services }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'acp')
    scope.add(Pipes, 'acp', {
      // most hosts have this plugin and no editor
      async serve(input, output, ctx) {
        const { serveEditor } = await import('./agent.ts')
        const { version } = await host.report(ctx)
        const hooks = {
          addTool: (name, tool) => scope.add(Tools, name, tool),
          onToolCall: tap => scope.tap(Chat.hooks.toolCall, tap, { stage: FIRST_STAGE }),
        } satisfies Parameters<typeof serveEditor>[0]['extend']
        await serveEditor({ ...services, config, log, version, lasting, extend: hooks }, { input, output }, ctx)
      },
    })
  },
})

/** A denial by the mode precedes the verdicts of other plugins. */
const FIRST_STAGE = -1_000
