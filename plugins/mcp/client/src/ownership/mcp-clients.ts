import { type CallContext, codeOf, type OpenSpan } from '@svc/core'
import type { Json, McpCallOptions, McpClients, ToolStep } from '@svc/core/contracts'
import { callFailed, type ListedTool, type StepsEnd, watchedSteps } from '@svc/mcp-protocol'
import { failed } from '../connection/failures.ts'
import { toolUnknown, versionStale } from '../errors.ts'
import { callTimesOf, limitedBySandbox } from '../registry/client-options.ts'
import { serverNamed } from '../registry/configured-servers.ts'
import type { CatalogueRecord } from '../registry/records.ts'
import { serverInfoOf } from '../registry/server-status.ts'
import type { McpContext } from './context.ts'
import { reachedNoOwner } from './peer-workers.ts'
import type { ServerOwner } from './server-owner.ts'
import type { ServerSession } from './server-session.ts'

/** What the owner of a server is asked to do. */
export type OwnerTask =
  | { readonly do: 'open' }
  | { readonly do: 'refresh' }
  | {
      readonly do: 'call'
      readonly tool: string
      readonly args: { readonly [name: string]: Json | undefined }
      readonly options: McpCallOptions
    }

/** The question of one worker to the owner of a server. A worker with another entry of that name is not its owner. */
export type OwnerQuestion = OwnerTask & { readonly server: string; readonly fingerprint: string }

/** The part of the service that belongs to connections, and what the commands of this plugin need besides. */
export interface ServerClients
  extends Pick<McpClients, 'list' | 'tools' | 'call' | 'approve' | 'approveVersions' | 'setEnabled'> {
  /** Connects a server if necessary, and lists its tools again. Throws MCP_CALL_FAILED, MCP_SERVER_UNKNOWN. */
  refresh(server: string, ctx: CallContext): Promise<CatalogueRecord>
  /** Approves these descriptions of tools. */
  approveListed(server: string, tools: readonly ListedTool[], ctx: CallContext): Promise<void>
}

/** Creates the service `McpClients`: each call goes to the worker that owns the server. */
export function createClients(context: McpContext, owners: readonly ServerOwner[]): ServerClients {
  const { servers, registry, span } = context
  const ownerOf = (name: string) => owners[servers.indexOf(serverNamed(servers, name))]!
  const approveListed = (name: string, tools: readonly ListedTool[], ctx: CallContext) =>
    registry.approve(ownerOf(name).server, tools, ctx)
  return {
    approveListed,
    list: async () => servers.map(server => serverInfoOf(server, registry)),
    async tools(name, ctx) {
      const owner = ownerOf(name)
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
    },
    async refresh(name, ctx) {
      const owner = ownerOf(name)
      for await (const catalogue of askOwner(context, owner, { do: 'refresh' }, ctx))
        return catalogue as unknown as CatalogueRecord
      throw callFailed(name, 'cancelled', 'the list of its tools ended without an answer')
    },
    call(name, tool, args, asked, ctx) {
      const owner = ownerOf(name)
      const { server } = owner
      const callOptions = limitedBySandbox(server.entry, asked)
      const open = (within: CallContext): AsyncIterable<ToolStep> => {
        const session = registry.isEnabled(server) ? owner.session : undefined
        if (session) return session.call(tool, args, callOptions, within)
        const steps = askOwner(context, owner, { do: 'call', tool, args, options: callOptions }, within)
        return steps as AsyncIterable<unknown> as AsyncIterable<ToolStep>
      }
      const begin = () => span(`tools/call ${tool}`, ctx, { kind: 'client', attributes: callAttributes(name, tool) })
      return spannedSteps(begin, open)
    },
    async approve(name, names, ctx) {
      const listed = registry.catalogue(ownerOf(name).server)?.tools ?? []
      await approveListed(name, selected(name, listed, names), ctx)
    },
    async approveVersions(name, versions, ctx) {
      const listed = (await registry.latestCatalogue(ownerOf(name).server, ctx))?.tools ?? []
      const names = versions.map(one => one.name)
      const tools = selected(name, listed, names)
      const stale = versions.find(one => tools.find(tool => tool.name === one.name)?.hash !== one.version)
      if (stale) throw versionStale(name, stale.name)
      await approveListed(name, tools, ctx)
    },
    setEnabled: (name, enabled, ctx) => registry.setEnabled(ownerOf(name).server, enabled, ctx),
  }
}

/** By the conventions of OpenTelemetry for MCP. */
const callAttributes = (server: string, tool: string) => ({
  'mcp.method.name': 'tools/call',
  'gen_ai.tool.name': tool,
  'svc.mcp.server': server,
})

/** The steps of a call as a span, from the first read to the end. */
function spannedSteps(begin: () => OpenSpan, open: (ctx: CallContext) => AsyncIterable<ToolStep>): AsyncIterable<ToolStep> {
  let span: OpenSpan | undefined
  const start = () => open((span = begin()).ctx)
  return watchedSteps(start, end => {
    const failure = failureIn(end)
    if (failure !== undefined) span?.fail(failure)
    span?.end()
  })
}

function failureIn(end: StepsEnd): unknown {
  if (end === 'abandoned') return 'cancelled'
  if (typeof end === 'string') return end
  if ('thrown' in end) return end.thrown
  return end.last.type === 'result' && end.last.result.isError ? 'failed' : undefined
}

/** The tools of these names, or all. Throws MCP_TOOL_UNKNOWN. */
export function selected<T extends { readonly name: string }>(
  server: string,
  tools: readonly T[],
  names: readonly string[] | undefined
): readonly T[] {
  const known = tools.map(tool => tool.name)
  const unknown = names?.find(name => !known.includes(name))
  if (unknown !== undefined) throw toolUnknown(server, unknown, known)
  return names === undefined ? tools : tools.filter(tool => names.includes(tool.name))
}

/** Does the task in the worker that owns the server. */
export async function* doTask(session: ServerSession, task: OwnerTask, ctx: CallContext): AsyncGenerator<Json, void> {
  if (task.do === 'open') return await session.open(ctx)
  if (task.do === 'refresh') return yield (await session.refresh(ctx)) as unknown as Json
  yield* session.call(task.tool, task.args, task.options, ctx) as AsyncIterable<unknown> as AsyncIterable<Json>
}

/** Asks the owner of a server; asks the next owner if the question has reached none. */
async function* askOwner(
  { workers }: McpContext,
  owner: ServerOwner,
  task: OwnerTask,
  ctx: CallContext
): AsyncGenerator<Json, void> {
  const { entry, fingerprint } = owner.server
  const question: OwnerQuestion = { ...task, server: entry.name, fingerprint }
  const endsAt = performance.now() + callTimesOf(entry).usual
  for (;;) {
    const found = await owner.find(ctx)
    if (typeof found !== 'string') return yield* doTask(found, task, ctx)
    try {
      return yield* workers!.ask(found, question as unknown as Json, ctx)
    } catch (error) {
      if (performance.now() > endsAt || !reachedNoOwner(error)) throw ownerFailure(entry.name, error)
      await owner.nextChange(ctx)
    }
  }
}

function ownerFailure(server: string, error: unknown): unknown {
  // the deadline of the caller has passed
  if (codeOf(error) === 'TIMEOUT') return failed(server, error)
  const isUndelivered = reachedNoOwner(error)
  if (codeOf(error) !== 'PEER_GONE' && !isUndelivered) return error
  const delivered = isUndelivered ? 'no' : 'maybe'
  return callFailed(server, 'connection_refused', 'the worker that owned its connection has ended', { delivered, cause: error })
}
