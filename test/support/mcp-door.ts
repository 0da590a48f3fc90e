import { definePlugin } from '@svc/core'
import { McpClients, Routes, type ToolStep } from '@svc/core/contracts'

/** The tool servers of a worker, over HTTP: how they stand there, and calls of their tools. */
export default definePlugin({
  requires: { clients: McpClients },
  setup(scope, { clients }) {
    scope.add(Routes, 'mcp-list', {
      method: 'GET',
      path: '/mcp-list',
      summary: 'How the tool servers stand, as this worker sees it',
      handle: async (_, ctx) => ({ body: { worker: process.pid, servers: await clients.list(ctx) } }),
    })
    scope.add(Routes, 'mcp-call', {
      method: 'POST',
      path: '/mcp-call',
      summary: 'Calls a tool of a tool server',
      body: { type: 'object' },
      async handle({ body }, ctx) {
        const { server, tool, args = {} } = body as unknown as { server: string; tool: string; args?: Record<string, never> }
        try {
          let last: ToolStep | undefined
          for await (const step of clients.call(server, tool, args, {}, ctx)) last = step
          return { body: { worker: process.pid, last } }
        } catch (error) {
          const { code, details } = error as { code?: string; details?: object }
          return { body: { worker: process.pid, code, ...details } }
        }
      },
    })
  },
})
