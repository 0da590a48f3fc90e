import { definePlugin } from '@svc/core'
import { Providers, Tools } from '@svc/core/contracts'

/** A model that calls the tool and then tells both traces: its own and the tool's. */
export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'trace_of', {
      description: 'Tells its trace.',
      category: 'time',
      effects: [],
      parameters: { type: 'object', properties: {} },
      call: async (_args, { trace }) => ({ content: [{ type: 'text', text: trace ?? 'none' }] }),
    })
    scope.add(Providers, 'tracer', {
      features: { tool_calling: true, streaming: true, vision: false },
      models: async () => ({ models: [{ id: 'tracer-1' }], open: false }),
      countTokens: async () => 1,
      async *chat({ messages }, { trace }) {
        const result = messages.at(-1)?.parts.find(part => part.type === 'tool_result')
        const [answer] = result?.content ?? []
        if (answer?.type === 'text') yield { type: 'text', text: `provider ${trace ?? 'none'}, tool ${answer.text}` }
        else yield { type: 'tool_call', id: 'c1', tool: 'trace_of', arguments: {} }
        yield { type: 'usage', usage: { input: 1, output: 1 } }
        yield { type: 'finish', reason: answer ? 'stop' : 'tool_calls' }
      },
      async probe() {},
    })
  },
})
