import { list, object, ok, STRING } from '@svc/api-types'
import { type JsonSchema, type SlotView } from '@svc/core'
import type { McpClients, Route, Tool, ToolOrigin } from '@svc/core/contracts'
import { notFound } from '../records.ts'

interface ToolAppServices {
  readonly tools: SlotView<Tool>
  readonly clients?: McpClients | undefined
}

const APP: JsonSchema = {
  ...(object({
    server: STRING,
    uri: STRING,
    html: { ...(STRING as object), description: 'The page, as the server sent it. Show it only in a frame of an opaque origin.' },
    tools: {
      ...(list(object({ name: STRING, tool: STRING })) as object),
      description: 'The tools that the app can call: the name on its server, and the name here.',
    },
  }) as object),
  title: 'ToolApp',
}

/** Whether a tool has an app that shows its results. */
export const hasApp = ({ mcp }: Tool): boolean => mcp?.resourceUri !== undefined

/** The route of MCP Apps. A caller names a tool and no address: only the app of that tool can be read. */
export const createToolAppRoute = ({ tools, clients }: ToolAppServices): Route => ({
  method: 'GET',
  path: '/api/v1/tools/:name/app',
  summary: 'Read the MCP App of a tool',
  description: 'The page that the MCP server has for the results of the tool: `_meta.ui.resourceUri` of the approved tool.',
  scope: 'tools',
  responses: ok('The app.', APP),
  async handle({ params }, ctx) {
    const name = params.name!
    const origin = tools.get(name)?.mcp
    if (origin?.resourceUri === undefined || clients === undefined) throw notFound('app', name)
    const { uri, html } = await clients.app(origin.server, origin.tool, ctx)
    return { body: { server: origin.server, uri, html, tools: toolsFor(origin, tools, tools.owner(name)) } }
  },
})

/** The tools of the same server that apps can call. A plugin cannot add one of its own to the tools of a server. */
const toolsFor = ({ server }: ToolOrigin, tools: SlotView<Tool>, owner: string | undefined) =>
  tools.entries().flatMap(([name, { mcp }]) => {
    const isIts = mcp?.server === server && mcp.visibility.includes('app') && tools.owner(name) === owner
    return isIts ? [{ name: mcp.tool, tool: name }] : []
  })
