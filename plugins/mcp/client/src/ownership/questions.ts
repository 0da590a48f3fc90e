import type { CallContext } from '@svc/core'
import type { Json, McpFailure, McpTool, PeerAnswer } from '@svc/core/contracts'
import { failureOf, type ListedTool } from '@svc/mcp-protocol'
import { serverMoved } from '../errors.ts'
import type { Server } from '../registry/configured-servers.ts'
import { serverNamed } from '../registry/configured-servers.ts'
import { assessTools } from '../registry/pinning.ts'
import type { ServerRegistry } from '../registry/server-registry.ts'
import { type ConnectionTest, testConnection } from './connection-test.ts'
import { doTask, type McpClientsService, type OwnerQuestion } from './mcp-clients.ts'
import type { PING } from './peer-workers.ts'
import type { ServerOwner } from './server-owner.ts'

/** A question of `svc mcp` to a worker of the running server, or to the plugins in its own process. */
export type CommandQuestion =
  | { readonly do: 'list' }
  | { readonly do: 'tools'; readonly server: string }
  | { readonly do: 'approve'; readonly server: string; readonly tools: readonly ListedTool[] }
  | { readonly do: 'switch'; readonly server: string; readonly enabled: boolean }
  | { readonly do: 'test'; readonly server: string; readonly call?: ConnectionTest['call'] }

/** The answer to `tools`. */
export interface ToolsAnswer {
  /** As the server lists them now, or as it listed them last. */
  readonly listed: readonly ListedTool[]
  /** The same, with their standing. */
  readonly tools: readonly McpTool[]
  /** What was left out and why, a line each. */
  readonly problems: readonly string[]
  /** Why the server could not be asked now. */
  readonly failure?: McpFailure
}

export interface QuestionsOptions {
  readonly owners: readonly ServerOwner[]
  readonly registry: ServerRegistry
  readonly clients: McpClientsService
  readonly openClient: (server: Server) => ConnectionTest['open']
  readonly lasting: CallContext
}

/** Answers the questions of other workers and of commands: the item of the slot `PeerAnswers`. */
export function createAnswer(options: QuestionsOptions): PeerAnswer {
  const { owners, lasting } = options
  return {
    async *answer(message, ctx) {
      const question = message as unknown as OwnerQuestion | CommandQuestion | typeof PING
      if (question.do === 'ping') return yield true
      if (!('fingerprint' in question))
        return yield* answerCommand(options, question, ctx) as AsyncIterable<unknown> as AsyncIterable<Json>
      const { server: name, fingerprint } = question
      const owner = owners.find(({ server }) => server.entry.name === name && server.fingerprint === fingerprint)
      const session = owner?.offered
      if (!session) throw serverMoved(name)
      // opening and listing serve all callers
      yield* doTask(session, question, question.do === 'call' ? ctx : { ...lasting, signal: ctx.signal })
    },
  }
}

async function* answerCommand(options: QuestionsOptions, question: CommandQuestion, ctx: CallContext): AsyncGenerator<unknown> {
  const { owners, clients } = options
  if (question.do === 'list') return yield await clients.list(ctx)
  if (question.do === 'approve') return await clients.approveVersions(question.server, question.tools, ctx)
  if (question.do === 'switch') return await clients.setEnabled(question.server, question.enabled, ctx)
  const servers = owners.map(owner => owner.server)
  const server = serverNamed(servers, question.server)
  if (question.do === 'tools') return yield await readTools(options, server, ctx)
  const { call } = question
  yield* testConnection({ server, open: options.openClient(server), signal: ctx.signal, ...(call && { call }) })
}

/** Lists the tools now; those listed last if the server cannot be asked. Throws MCP_CALL_FAILED if there are none either. */
async function readTools({ registry, clients }: QuestionsOptions, server: Server, ctx: CallContext): Promise<ToolsAnswer> {
  const read = await clients.refresh(server.entry.name, ctx).catch((error: unknown) => {
    ctx.signal.throwIfAborted()
    const last = registry.catalogue(server)
    if (last === undefined) throw error
    return { ...last, failure: failureOf(error) }
  })
  const { tools: listed, problems } = read
  const tools = assessTools(listed, registry.pins(server), server.entry)
  return { listed, tools, problems, ...('failure' in read && { failure: read.failure }) }
}
