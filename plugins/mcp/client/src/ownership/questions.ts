import type { CallContext } from '@svc/core'
import type { McpInspection, McpTestStep, PeerAnswer } from '@svc/core/contracts'
import { assessTools, failureOf, type ListedTool } from '@svc/mcp-protocol'
import type { McpClient } from '../connection/client-types.ts'
import { serverMoved } from '../errors.ts'
import { clientOptions } from '../registry/client-options.ts'
import type { McpServerSettings } from '../registry/configured-servers.ts'
import { type CatalogueRecord, loginStorage } from '../registry/records.ts'
import { type ConnectionTest, testConnection } from './connection-test.ts'
import type { McpContext } from './context.ts'
import type { LoginAnswer, Logins } from './logins.ts'
import { doTask, type OwnerQuestion, type ServerClients } from './mcp-clients.ts'
import type { PING } from './peer-workers.ts'
import type { ServerOwner } from './server-owner.ts'

/** The tools of a server. */
interface ToolsAnswer extends McpInspection {
  /** The tools without their status. */
  readonly listed: readonly ListedTool[]
}

/** Answers the questions of other workers: the item of the slot `PeerAnswers`. */
export function createAnswer(context: McpContext, owners: readonly ServerOwner[], logins: Logins): PeerAnswer {
  return {
    async *answer(message, ctx) {
      const question = message as unknown as OwnerQuestion | LoginAnswer | typeof PING
      if (question.do === 'login-answer') return logins.take(question, ctx)
      if (question.do === 'ping') return yield true
      const { server: name, fingerprint } = question
      const owner = owners.find(({ server }) => server.entry.name === name && server.fingerprint === fingerprint)
      const session = owner?.offered
      if (!session) throw serverMoved(name)
      // opening and listing serve all callers
      yield* doTask(session, question, question.do === 'call' ? ctx : { ...context.lasting, signal: ctx.signal })
    },
  }
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
