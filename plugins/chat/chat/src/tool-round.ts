import type { CallContext } from '@svc/core'
import type { ToolCallPart, TurnEvent } from '@svc/core/contracts'
import { turnTimeout } from './errors.ts'
import type { ChatRoom } from './parts.ts'
import type { Turn } from './turn.ts'
import type { Arguments } from './tool-arguments.ts'
import { textOf } from './tool-result.ts'
import { type ToolOutcome, type ToolUseParts, useTool } from './use-tool.ts'

/** The last round, and one whose budget is spent, has to do without tools. */
export const mayUseTools = (room: ChatRoom, turn: Turn, number: number): boolean =>
  number < room.config.max_rounds && turn.toolsUsed.length < budgetOf(room, turn)

const budgetOf = ({ modes }: ChatRoom, { asked, selected }: Turn) =>
  Math.min(modes.get(selected.mode)?.toolBudget ?? Number.POSITIVE_INFINITY, asked.toolBudget ?? Number.POSITIVE_INFINITY)

/** Runs the calls of a round, so many at a time; their results come in the order of the calls. */
export async function* runTools(
  room: ChatRoom,
  turn: Turn,
  calls: readonly ToolCallPart[],
  isShown: boolean,
  ctx: CallContext
): AsyncGenerator<TurnEvent, void> {
  if (isShown) for (const call of calls) yield { type: 'tool_call', tool: call.tool, callId: call.id, arguments: call.arguments }
  const outcomes =
    isShown && turn.asked.interactive === true
      ? yield* runAsking(room, turn, calls, ctx)
      : await runAll(room, turn, calls, undefined, ctx)
  if (performance.now() >= turn.until) throw turnTimeout(turn.who.provider, turn.limitMs)
  turn.toolsUsed.push(...outcomes.map(outcome => outcome.use))
  turn.made.push({ role: 'tool', parts: outcomes.map(outcome => outcome.part) })
  if (isShown) for (const outcome of outcomes) yield resultEvent(outcome)
}

type Ask = (
  call: ToolCallPart,
  ...about: Parameters<NonNullable<ToolUseParts['ask']>>
) => ReturnType<NonNullable<ToolUseParts['ask']>>

function runAll(
  room: ChatRoom,
  turn: Turn,
  calls: readonly ToolCallPart[],
  ask: Ask | undefined,
  ctx: CallContext
): Promise<ToolOutcome[]> {
  const { config, hooks, log } = room
  const shared = {
    conversationId: turn.open.conversationId,
    mode: turn.selected.mode,
    limits: { timeoutMs: config.tool_timeout_ms, until: turn.until, resultLimit: config.tool_result_limit },
    verdict: hooks.toolCall,
    log,
  }
  const left = budgetOf(room, turn) - turn.toolsUsed.length
  return inOrder(calls, config.max_parallel_tools, (part, at) => {
    ctx.signal.throwIfAborted()
    const asking = ask && ((args: Arguments, question: string) => ask(part, args, question))
    const own = turn.keys ? { ...ctx, idempotencyKey: turn.keys.of(part) } : ctx
    return useTool({ ...shared, tool: turn.list.tools.get(part.tool), part, granted: at < left, ask: asking }, own)
  })
}

/** Does work for each item, for at most so many at a time; the results in the order of the items. */
async function inOrder<T, R>(items: readonly T[], atOnce: number, work: (item: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const open = items.entries()
  const worker = async () => {
    for (const [at, item] of open) results[at] = await work(item, at)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
  return results
}

/** The same, with the questions that come up meanwhile. Tools of a turn whose reader stops are aborted. */
async function* runAsking(
  room: ChatRoom,
  turn: Turn,
  calls: readonly ToolCallPart[],
  ctx: CallContext
): AsyncGenerator<TurnEvent, ToolOutcome[]> {
  const stop = new AbortController()
  const within = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) }
  const asked: TurnEvent[] = []
  let heard = Promise.withResolvers<void>()
  const ask: Ask = (call, args, question) => {
    const waitMs = Math.max(0, Math.min(room.config.ask_timeout_ms, turn.until - performance.now()))
    const answer = room.questions.ask(call.id, waitMs, within)
    asked.push({ type: 'ask', tool: call.tool, callId: call.id, arguments: args, question })
    heard.resolve()
    return answer
  }
  let isOver = false
  const outcomes = runAll(room, turn, calls, ask, within).finally(() => (isOver = true))
  // it may fail while an event is being read: whoever awaits it learns of that
  outcomes.catch(() => undefined)
  try {
    while (!isOver) {
      await Promise.race([heard.promise, outcomes])
      heard = Promise.withResolvers()
      for (const event of asked.splice(0)) yield event
    }
    return await outcomes
  } finally {
    stop.abort(new Error('the turn has ended'))
  }
}

function resultEvent({ use, part, result }: ToolOutcome): TurnEvent {
  return {
    type: 'tool_result',
    tool: use.tool,
    callId: use.callId,
    success: use.success,
    result: result.structured ?? textOf(part.content),
    error: use.error ?? null,
    durationMs: use.durationMs,
  }
}
