import type { CallContext } from '@svc/core'
import type { Json, McpInspection, McpTestStep, PeerAnswer } from '@svc/core/contracts'
import { assessTools, failureOf, type ListedTool } from '@svc/mcp-protocol'
import type { McpClient } from '../connection/client-types.ts'
import { serverMoved } from '../errors.ts'
import { clientOptions } from '../registry/client-options.ts'
import { type McpServerSettings, serverNamed } from '../registry/configured-servers.ts'
import { type CatalogueRecord, loginStorage } from '../registry/records.ts'
import { type ConnectionTest, testConnection } from './connection-test.ts'
import type { McpContext } from './context.ts'
import type { LoginAnswer, Logins } from './logins.ts'
import { doTask, type OwnerQuestion, type ServerClients } from './mcp-clients.ts'
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
export interface ToolsAnswer extends McpInspection {
  /** The tools without their status. */
  readonly listed: readonly ListedTool[]
}

/** Answers the questions of other workers and of commands: the item of the slot `PeerAnswers`. */
export function createAnswer(
  context: McpContext,
  owners: readonly ServerOwner[],
  clients: ServerClients,
  logins: Logins
): PeerAnswer {
  return {
    async *answer(message, ctx) {
      const question = message as unknown as OwnerQuestion | CommandQuestion | LoginAnswer | typeof PING
      if (question.do === 'login-answer') return logins.take(question, ctx)
      if (question.do === 'ping') return yield true
      if (!('fingerprint' in question))
        return yield* answerCommand(context, clients, question, ctx) as AsyncIterable<unknown> as AsyncIterable<Json>
      const { server: name, fingerprint } = question
      const owner = owners.find(({ server }) => server.entry.name === name && server.fingerprint === fingerprint)
      const session = owner?.offered
      if (!session) throw serverMoved(name)
      // opening and listing serve all callers
      yield* doTask(session, question, question.do === 'call' ? ctx : { ...context.lasting, signal: ctx.signal })
    },
  }
}

async function* answerCommand(
  context: McpContext,
  clients: ServerClients,
  question: CommandQuestion,
  ctx: CallContext
): AsyncGenerator<unknown> {
  if (question.do === 'list') return yield await clients.list(ctx)
  if (question.do === 'approve') return await clients.approveListed(question.server, question.tools, ctx)
  if (question.do === 'switch') return await clients.setEnabled(question.server, question.enabled, ctx)
  const server = serverNamed(context.servers, question.server)
  if (question.do === 'tools') return yield await readTools(context, clients, server, ctx)
  yield* testServer(context, server, question.call, ctx)
}

/** Tests a server over a connection of its own. */
export const testServer = (
  context: McpContext,
  server: McpServerSettings,
  call: ConnectionTest['call'],
  { signal }: CallContext
): AsyncGenerator<McpTestStep> => testConnection({ server, open: () => openTestClient(context, server), signal, call })

/** Makes a client for a test, which fails with the first error: a user waits. */
async function openTestClient(context: McpContext, server: McpServerSettings): Promise<McpClient> {
  const storage = loginStorage(context.store, server, context.lasting)
  const { createMcpClient } = await import('../connection/mcp-client.ts')
  const client = createMcpClient(clientOptions(server, { ...context, storage }))
  client.setReconnectPolicy(0, 'constant')
  return client
}

/** Lists the tools now; those listed last if the server cannot be asked. Throws MCP_CALL_FAILED if there are none either. */
export async function readTools(
  { registry }: McpContext,
  clients: ServerClients,
  server: McpServerSettings,
  ctx: CallContext
): Promise<ToolsAnswer> {
  const answerOf = ({ tools: listed, problems }: CatalogueRecord): ToolsAnswer => ({
    listed,
    tools: assessTools(listed, registry.pins(server), server.entry),
    problems,
  })
  try {
    return answerOf(await clients.refresh(server.entry.name, ctx))
  } catch (error) {
    ctx.signal.throwIfAborted()
    const last = registry.catalogue(server)
    if (last === undefined) throw error
    return { ...answerOf(last), failure: failureOf(error) }
  }
}
