import { type CallContext, codeOf } from '@svc/core'
import type { Json, McpCallOptions, PeerAnswer } from '@svc/core/contracts'
import { callFailed, failed } from '@svc/mcp-protocol'
import type { Arguments } from '../connection/client-types.ts'
import { serverMoved } from '../errors.ts'
import { callTimesOf } from '../registry/client-options.ts'
import type { McpContext, PING } from './context.ts'
import type { LoginAnswer, Logins } from './logins.ts'
import type { ServerOwner } from './server-owner.ts'
import type { ServerSession } from './server-session.ts'

/** What the owner of a server is asked to do. */
type OwnerTask =
  | { readonly do: 'open' }
  | { readonly do: 'refresh' }
  | { readonly do: 'app'; readonly tool: string }
  | { readonly do: 'call'; readonly tool: string; readonly args: Arguments; readonly options: McpCallOptions }

/** The question of one worker to the owner of a server. A worker with another entry of that name is not its owner. */
type OwnerQuestion = OwnerTask & { readonly server: string; readonly fingerprint: string }

/** Asks the owner of a server; asks the next owner if the question has reached none. */
export async function* askOwner(
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

/** Whether a failed question has reached no owner: a worker that ends answers no topic. */
const reachedNoOwner = (error: unknown): boolean =>
  ['MCP_MOVED', 'PEER_SILENT'].includes(codeOf(error) ?? '') ||
  (codeOf(error) === 'PEER_GONE' && (error as { details?: Record<string, unknown> }).details?.['reached'] === false)

function ownerFailure(server: string, error: unknown): unknown {
  // the deadline of the caller has passed
  if (codeOf(error) === 'TIMEOUT') return failed(server, error)
  const isUndelivered = reachedNoOwner(error)
  if (codeOf(error) !== 'PEER_GONE' && !isUndelivered) return error
  const delivered = isUndelivered ? 'no' : 'maybe'
  return callFailed(server, 'connection_refused', 'the worker that owned its connection has ended', { delivered, cause: error })
}

/** Does the task in the worker that owns the server. */
async function* doTask(session: ServerSession, task: OwnerTask, ctx: CallContext): AsyncGenerator<Json, void> {
  if (task.do === 'open') return await session.open(ctx)
  if (task.do === 'refresh') return yield (await session.refresh(ctx)) as unknown as Json
  if (task.do === 'app') return yield (await session.app(task.tool, ctx)) as unknown as Json
  yield* session.call(task.tool, task.args, task.options, ctx) as AsyncIterable<unknown> as AsyncIterable<Json>
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
