import { svcError, type Use } from '@svc/core'
import type { Chat, TurnEnd, TurnEvent, TurnReply, TurnRequest, TurnStatus } from '@svc/core/contracts'
import { createClock } from './clock.ts'
import { told } from './errors.ts'
import type { ChatParts, ChatRoom } from './parts.ts'
import { ModelStep } from './model-step.ts'
import { createToolLists } from './tool-list.ts'
import { mayUseTools, runTools } from './tool-round.ts'
import { isFit } from './form.ts'
import { beginTurn, endEvent, keepTurn, leaveTurn, spend, startEvent, type Turn, type TurnHow } from './turn.ts'

/** Runs turns: the reply is the stream, gathered. */
export function createChat(parts: ChatParts): Chat {
  const room: ChatRoom = { ...parts, toolsFor: createToolLists(parts.tools, parts.modes), clock: createClock() }
  return {
    stream: (request, use) => runTurn(room, request, { isShown: true, key: use.idempotencyKey }, withoutKey(use)),
    reply: (request, use) => gather(runTurn(room, request, { isShown: false, key: use.idempotencyKey }, withoutKey(use))),
    answer: (answer, use) => room.questions.answer(answer, use),
  }
}

/** Each tool call has a key of its own; what is called besides is no piece of work that anybody tries again. */
function withoutKey(use: Use): Use {
  if (use.idempotencyKey === undefined) return use
  const { idempotencyKey: _key, ...rest } = use
  return rest
}

/** `isShown`: somebody reads along. An event that nobody sees is not handed from generator to generator: the turn has it all anyway. */
async function* runTurn(room: ChatRoom, request: TurnRequest, how: TurnHow, use: Use): AsyncGenerator<TurnEvent, TurnReply> {
  const { isShown } = how
  const turn = await beginTurn(room, request, how, use)
  let started = false
  let round: ModelStep | undefined
  let status: TurnStatus = 'cancelled'
  let end: TurnEnd | undefined
  try {
    for (let number = 1; ; number++) {
      const withTools = mayUseTools(room, turn, number)
      round = new ModelStep(room, turn, number, withTools, use)
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
        if (isShown && !turn.form) yield { type: 'token', content: text, index: turn.tokens++ }
      }
      // whatever it wants: there is no further round in which it could be told
      if (!withTools) round.answer.dropCalls()
      closeRound(turn, round)
      const { calls } = round.answer
      round = undefined
      if (calls.length > 0) yield* runTools(room, turn, calls, isShown, use)
      else if (!turn.form || isFit(turn, turn.form)) break
    }
    if (isShown && turn.form) yield { type: 'token', content: turn.said, index: 0 }
    await keepTurn(room, turn, 'completed', use)
    end = endEvent(turn, 'completed', use)
    if (isShown) yield end
    return replyOf(turn, end)
  } catch (error) {
    if (!use.signal.aborted) status = 'failed'
    if (!started) throw error
    end = await broken(room, turn, round, status, use)
    const failure = told(error)
    // what an abort throws is nobody's fault
    if (status === 'failed' && failure.code === 'INTERNAL_ERROR')
      room.log.error({ err: error, request_id: use.requestId }, 'a turn failed')
    if (!isShown && status === 'failed') throw svcError(failure.code, failure.message, { details: { ...failure.details } })
    if (status === 'failed') yield { type: 'error', error: failure }
    if (isShown) yield end
    return replyOf(turn, end)
  } finally {
    round?.leave()
    end ??= await broken(room, turn, round, status, use)
    await leaveTurn(room, turn)
    void room.hooks.end({ turn: turn.id, end, kept: turn.kept ? turn.made : [] }, use)
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

function closeRound(turn: Turn, { answer }: ModelStep) {
  spend(turn, answer)
  turn.made.push(answer.message(turn.who.provider))
}

/** Keeps what there is of a turn that did not complete. */
async function broken(room: ChatRoom, turn: Turn, round: ModelStep | undefined, status: TurnStatus, use: Use): Promise<TurnEnd> {
  const closed = round && closeBroken(turn, round)
  try {
    await keepTurn(room, turn, status, use)
  } catch (error) {
    room.log.error({ err: error, request_id: use.requestId }, 'what there was of a broken turn could not be kept')
  }
  await closed
  return endEvent(turn, status, use)
}

/** A round that its provider did not end: the turn and the metrics are told the same tokens. */
async function closeBroken(turn: Turn, round: ModelStep): Promise<void> {
  const { answer } = round
  if (answer.any) turn.made.push(answer.message(turn.who.provider))
  await round.settle()
  spend(turn, answer)
  round.close()
}

/** A turn that shows nothing has but one step. */
async function gather(events: AsyncGenerator<TurnEvent, TurnReply>): Promise<TurnReply> {
  for (let step = await events.next(); ; step = await events.next()) if (step.done) return step.value
}

function replyOf({ said }: Turn, { type: _type, ...end }: TurnEnd): TurnReply {
  return { response: said, ...end }
}
