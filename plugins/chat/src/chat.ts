import { svcError, type Use } from '@svc/core'
import type { Chat, Json, ToolCallPart, TurnEnd, TurnEvent, TurnReply, TurnRequest, TurnStatus } from '@svc/core/contracts'
import { createClock } from './clock.ts'
import { countTokens } from './count.ts'
import { told, turnTimeout } from './errors.ts'
import type { ChatParts, ChatRoom } from './parts.ts'
import { Round } from './round.ts'
import { createToolLists } from './tool-list.ts'
import { beginTurn, endEvent, keepTurn, startEvent, type Turn } from './turn.ts'
import { type ToolOutcome, textOf, useTool } from './use-tool.ts'

/** Runs turns: the reply is the stream, gathered. */
export function createChat(parts: ChatParts): Chat {
  const room: ChatRoom = { ...parts, toolsFor: createToolLists(parts.tools, parts.modes), clock: createClock() }
  return {
    stream: (request, use) => runTurn(room, request, 'shown', use),
    reply: (request, use) => gather(runTurn(room, request, 'gathered', use)),
  }
}

/** Whether somebody reads along. An event that nobody sees is not handed from generator to generator: the turn has it all anyway. */
type Sight = 'shown' | 'gathered'

async function* runTurn(room: ChatRoom, request: TurnRequest, sight: Sight, use: Use): AsyncGenerator<TurnEvent, TurnReply> {
  const isShown = sight === 'shown'
  const turn = await beginTurn(room, request, !isShown, use)
  let started = false
  let round: Round | undefined
  let status: TurnStatus = 'cancelled'
  let end: TurnEnd | undefined
  try {
    for (let number = 1; ; number++) {
      round = new Round(room, turn, number, mayUseTools(room, turn, number), use)
      for (;;) {
        const pending = round.next()
        if (isShown && !started && (await isSlow(pending, room.config.start_after_ms))) {
          started = true
          yield startEvent(turn, use)
        }
        const event = await pending
        if (!started) {
          started = true
          if (isShown) yield startEvent(turn, use)
        }
        if (!event) break
        const text = round.answer.take(event)
        if (text === undefined) continue
        turn.said += text
        if (isShown) yield { type: 'token', content: text, index: turn.tokens++ }
      }
      closeRound(turn, round)
      const { calls } = round.answer
      round = undefined
      if (calls.length === 0) break
      if (isShown)
        for (const call of calls) yield { type: 'tool_call', tool: call.tool, callId: call.id, arguments: call.arguments }
      const outcomes = await runTools(room, turn, calls, use)
      if (isShown) for (const outcome of outcomes) yield resultEvent(outcome)
    }
    await keepTurn(room, turn, 'completed', use)
    end = endEvent(turn, 'completed', use)
    if (isShown) yield end
    return replyOf(turn, end)
  } catch (error) {
    if (!use.signal.aborted) status = 'failed'
    if (!started) throw error
    end = await broken(room, turn, round, status, use)
    const failure = told(error)
    if (failure.code === 'INTERNAL_ERROR') room.log.error({ err: error, request_id: use.requestId }, 'a turn failed')
    if (!isShown && status === 'failed') throw svcError(failure.code, failure.message, { details: { ...failure.details } })
    if (status === 'failed') yield { type: 'error', error: failure }
    if (isShown) yield end
    return replyOf(turn, end)
  } finally {
    round?.close()
    end ??= await broken(room, turn, round, status, use)
    await room.conversations.end(turn.open.ticket, room.lasting)
    void room.hooks.end({ end, kept: turn.kept ? turn.made : [] }, use)
  }
}

/** Whether the first event is later than the start may be. */
async function isSlow(pending: Promise<unknown>, afterMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, afterMs, true)
  pending.then(
    () => resolve(false),
    () => resolve(false)
  )
  return promise.finally(() => clearTimeout(timer))
}

/** The last round, and one whose budget is spent, has to do without tools. */
function mayUseTools(room: ChatRoom, turn: Turn, number: number): boolean {
  const features = room.providers.get(turn.who.provider)?.features
  return features?.tool_calling !== false && number < room.config.max_rounds && turn.toolsUsed.length < budgetOf(room, turn)
}

const budgetOf = (room: ChatRoom, turn: Turn) => room.modes.get(turn.selected.mode)?.toolBudget ?? Number.POSITIVE_INFINITY

function closeRound(turn: Turn, { answer }: Round) {
  turn.usage.input += answer.usage.input
  turn.usage.output += answer.usage.output
  turn.made.push(answer.message(turn.who.provider))
}

/** Runs the calls of a round at once; their results come in the order of the calls. */
async function runTools(room: ChatRoom, turn: Turn, calls: readonly ToolCallPart[], use: Use): Promise<ToolOutcome[]> {
  const { tool_timeout_ms: timeoutMs, tool_result_limit: resultLimit } = room.config
  const leftMs = turn.until - performance.now()
  const left = budgetOf(room, turn) - turn.toolsUsed.length
  const outcomes = await Promise.all(
    calls.map((part, at) =>
      useTool(
        {
          tool: turn.list.tools.get(part.tool),
          part,
          conversationId: turn.open.conversationId,
          mode: turn.selected.mode,
          granted: at < left,
          limits: { timeoutMs, leftMs, resultLimit },
          ask: room.hooks.toolCall,
          now: () => performance.now(),
        },
        use
      )
    )
  )
  if (performance.now() >= turn.until) throw turnTimeout(turn.who.provider, room.config.timeout_ms)
  turn.toolsUsed.push(...outcomes.map(outcome => outcome.use))
  turn.made.push({ role: 'tool', parts: outcomes.map(outcome => outcome.part) })
  return outcomes
}

function resultEvent({ use, part, result }: ToolOutcome): TurnEvent {
  const value = result.structured ?? textOf(part.content)
  return {
    type: 'tool_result',
    tool: use.tool,
    callId: use.callId,
    success: use.success,
    result: value as Json,
    error: use.error ?? null,
    durationMs: use.durationMs,
  }
}

/** Keeps what there is of a turn that did not complete. */
async function broken(room: ChatRoom, turn: Turn, round: Round | undefined, status: TurnStatus, use: Use): Promise<TurnEnd> {
  const cost = round?.answer.any ? closeBroken(room, turn, round, use) : undefined
  try {
    await keepTurn(room, turn, status, use)
  } catch (error) {
    room.log.error({ err: error, request_id: use.requestId }, 'what there was of a broken turn could not be kept')
  }
  await cost
  return endEvent(turn, status, use)
}

/** The tokens of a round that its provider did not end are counted afterwards. */
async function closeBroken(room: ChatRoom, turn: Turn, round: Round, use: Use): Promise<void> {
  const { request, answer } = round
  closeRound(turn, round)
  if (!request || answer.usage.input + answer.usage.output > 0) return
  const lasting = { ...use, signal: room.lasting.signal }
  const { input, output } = await countTokens(room.providers.get(turn.who.provider), request, turn.made.at(-1)!, lasting)
  turn.usage.input += input
  turn.usage.output += output
}

/** A turn that shows nothing has but one step. */
async function gather(events: AsyncGenerator<TurnEvent, TurnReply>): Promise<TurnReply> {
  for (let step = await events.next(); ; step = await events.next()) if (step.done) return step.value
}

function replyOf({ said }: Turn, { type: _type, ...end }: TurnEnd): TurnReply {
  return { response: said, ...end }
}
