import type { JsonSchema, Use } from '@svc/core'
import type { Json, McpClients, McpServerInfo, McpTool, Tool, ToolDialog, ToolStep } from '@svc/core/contracts'
import { nobodyToAsk, noResult } from './errors.ts'
import type { Ledger } from './ledger.ts'
import { questionOf } from './question.ts'

/** What a bridged tool is made of. */
export interface BridgedParts {
  /** Its name in this service. */
  readonly name: string
  readonly server: McpServerInfo
  readonly tool: McpTool
  readonly clients: McpClients
  readonly ledger: Ledger
}

type Arguments = { readonly [name: string]: Json | undefined }

/** Who calls through `call` cannot be asked. */
const NOBODY: ToolDialog = { can: [] }

/** What the caller gives the call wins over the time that its server is given. */
const timeOf = ({ deadline }: Use) => (deadline === undefined ? {} : { timeoutMs: Math.max(1, deadline - Date.now()) })

/** A tool of another server as one of this service: its own words and schemas, the operator's word on what it does. */
export function createBridgedTool({ name, server, tool, clients, ledger }: BridgedParts): Tool {
  const run = (args: Arguments, dialog: ToolDialog, use: Use): AsyncIterable<ToolStep> =>
    ledger.keep(
      { server: server.name, tool: name },
      asking(server.name, clients.call(server.name, tool.name, args, { dialog, ...timeOf(use) }, use)),
      use
    )
  return {
    ...(tool.title === undefined ? {} : { title: tool.title }),
    description: tool.description || tool.title || `The tool "${tool.name}" of the server "${server.name}".`,
    category: 'mcp',
    effects: server.effects,
    parameters: tool.inputSchema as JsonSchema,
    ...(tool.outputSchema === undefined ? {} : { result: tool.outputSchema as JsonSchema }),
    timeoutMs: server.callLimitMs,
    async call(args, use) {
      for await (const step of run(args, NOBODY, use)) {
        if (step.type === 'result') return step.result
        if (step.type === 'input')
          throw nobodyToAsk(
            name,
            Object.values(step.requests).map(({ method }) => method)
          )
      }
      throw noResult(name, server.name)
    },
    run,
  }
}

/** The same steps, with questions as a person may see them. By hand: a generator would be one more that each step goes through. */
const asking = (server: string, steps: AsyncIterable<ToolStep>): AsyncIterable<ToolStep> => ({
  [Symbol.asyncIterator]() {
    const source = steps[Symbol.asyncIterator]()
    const leave = () => source.return?.() ?? Promise.resolve({ done: true as const, value: undefined })
    return {
      async next() {
        const item = await source.next()
        if (item.done || item.value.type !== 'input') return item
        try {
          return { done: false, value: questionOf(server, item.value) }
        } catch (error) {
          await leave()
          throw error
        }
      },
      return: leave,
    }
  },
})
