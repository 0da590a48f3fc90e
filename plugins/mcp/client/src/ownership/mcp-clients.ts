import type { CallContext } from '@svc/core'
import type { McpApp, McpClients, McpInspection, ToolStep } from '@svc/core/contracts'
import { assessTools, callFailed, failureOf, type ListedTool, pinTools, spannedSteps } from '@svc/mcp-protocol'
import { versionStale } from '../errors.ts'
import { limitedBySandbox } from '../registry/client-options.ts'
import { selected, serverNamed } from '../registry/configured-servers.ts'
import type { CatalogueRecord } from '../registry/records.ts'
import { serverInfoOf } from '../registry/server-status.ts'
import { testConnection } from './connection-test.ts'
import type { McpContext } from './context.ts'
import type { Logins } from './logins.ts'
import { askOwner } from './questions.ts'
import type { ServerOwner } from './server-owner.ts'

/** Creates the service `McpClients` without its changes of the configuration: each call goes to the worker that owns the server. */
export function createClients(
  context: McpContext,
  owners: readonly ServerOwner[],
  logins: Logins
): Omit<McpClients, 'add' | 'remove'> {
  const { servers, registry } = context
  const named = (name: string) => serverNamed(servers, name)
  const ownerOf = (name: string) => owners[servers.indexOf(named(name))]!
  return {
    list: async () => servers.map(server => serverInfoOf(server, registry)),
    tools: async (name, ctx) => toolsOf(context, ownerOf(name), ctx),
    inspect: async (name, fresh, ctx) => inspect(context, ownerOf(name), fresh, ctx),
    call(name, tool, args, asked, ctx) {
      const owner = ownerOf(name)
      const { server } = owner
      const options = limitedBySandbox(server.entry, asked)
      const open = (within: CallContext): AsyncIterable<ToolStep> => {
        const session = registry.isEnabled(server) ? owner.session : undefined
        if (session) return session.call(tool, args, options, within)
        const steps = askOwner(context, owner, { do: 'call', tool, args, options }, within)
        return steps as AsyncIterable<unknown> as AsyncIterable<ToolStep>
      }
      const begin = () => context.span(`tools/call ${tool}`, ctx, { kind: 'client', attributes: callAttributes(name, tool) })
      return spannedSteps(begin, open)
    },
    app: async (name, tool, ctx) => appOf(context, ownerOf(name), tool, ctx),
    async approve(name, names, ctx) {
      const server = named(name)
      const tools = selected(name, registry.catalogue(server)?.tools ?? [], names)
      await registry.changePins(server, pins => pinTools(pins, tools), ctx)
    },
    async approveVersions(name, versions, ctx) {
      const server = named(name)
      const listed = (await registry.latestCatalogue(server, ctx))?.tools ?? []
      const names = versions.map(one => one.name)
      const tools = selected<ListedTool>(name, listed, names)
      const stale = versions.find(one => tools.find(tool => tool.name === one.name)?.hash !== one.version)
      if (stale) throw versionStale(name, stale.name)
      await registry.changePins(server, pins => pinTools(pins, tools), ctx)
    },
    setEnabled: async (name, enabled, ctx) => registry.setEnabled(named(name), enabled, ctx),
    async *test(name, call, { signal }) {
      yield* testConnection(context, named(name), call, signal)
    },
    async *login(name, port, ctx) {
      yield* logins.login(named(name), port, ctx)
    },
    answerLogin: (id, address, ctx) => logins.answer(id, address, ctx),
  }
}

async function toolsOf(context: McpContext, owner: ServerOwner, ctx: CallContext) {
  const { registry } = context
  const known = registry.tools(owner.server)
  if (known) return known
  for await (const _ of askOwner(context, owner, { do: 'open' }, ctx)) continue
  // the list comes through the store, a moment after the answer
  for (;;) {
    const tools = registry.tools(owner.server)
    if (tools) return tools
    ctx.signal.throwIfAborted()
    await owner.nextChange(ctx)
  }
}

async function appOf(context: McpContext, owner: ServerOwner, tool: string, ctx: CallContext): Promise<McpApp> {
  for await (const app of askOwner(context, owner, { do: 'app', tool }, ctx)) return app as unknown as McpApp
  throw callFailed(owner.server.entry.name, 'cancelled', 'the request for its app ended without an answer')
}

/** The tools now (`fresh`), or those listed last if the server cannot be asked. Throws MCP_CALL_FAILED if there are none either. */
async function inspect(context: McpContext, owner: ServerOwner, fresh: boolean, ctx: CallContext): Promise<McpInspection> {
  const { registry } = context
  const { server } = owner
  const known = fresh ? undefined : registry.tools(server)
  if (known) return { tools: known, problems: registry.catalogue(server)?.problems ?? [] }
  const inspectionOf = ({ tools, problems }: CatalogueRecord) => ({
    tools: assessTools(tools, registry.pins(server), server.entry),
    problems,
  })
  try {
    for await (const catalogue of askOwner(context, owner, { do: 'refresh' }, ctx))
      return inspectionOf(catalogue as unknown as CatalogueRecord)
    throw callFailed(server.entry.name, 'cancelled', 'the list of its tools ended without an answer')
  } catch (error) {
    ctx.signal.throwIfAborted()
    const last = registry.catalogue(server)
    if (last === undefined) throw error
    return { ...inspectionOf(last), failure: failureOf(error) }
  }
}

/** By the conventions of OpenTelemetry for MCP. */
const callAttributes = (server: string, tool: string) => ({
  'mcp.method.name': 'tools/call',
  'gen_ai.tool.name': tool,
  'svc.mcp.server': server,
})
