import { type CallContext, codeOf } from '@svc/core'
import type { Chat, ChatQuestion, Conversations, Json, TurnStreams } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'
import type { TurnRunner } from './chat.ts'
import { invalid, questionUnknown, turnCancelled } from './errors.ts'
import { type PersonAnswer, type Questions, saidIn, shownArguments } from './questions.ts'
import { type SavedTurn, savedOf } from './saved-turn.ts'
import { type InterruptedStreams, isTurnId } from './turn-streams.ts'
import { formProblems } from './tool-dialog.ts'
import type { WaitingQuestion, WaitingTurns } from './waiting-turns.ts'

/** The leases of a server that was killed expire after ten seconds. */
const WAIT_MS = 12_000

interface InterruptedOptions {
  readonly questions: Questions
  readonly waiting: WaitingTurns | undefined
  readonly runner: TurnRunner
  readonly turns: { readonly streams: TurnStreams; readonly interrupted: InterruptedStreams }
  readonly conversations: Conversations
}

/** The services `Chat` and `TurnStreams`. */
export function createChat(options: InterruptedOptions): Chat & TurnStreams {
  const { stream, reply, callTool } = options.runner
  return { stream, reply, callTool, ...options.turns.streams, ...createInterruptedTurns(options) }
}

/** Answers of persons, and questions of all turns: of those that run, and of those whose worker has exited. */
function createInterruptedTurns(options: InterruptedOptions): Pick<Chat, 'answer' | 'questions'> & Pick<TurnStreams, 'cancel'> {
  const { questions, waiting } = options
  return {
    async answer(answer, ctx) {
      const { requestId, callId } = answer
      const owner = ctx.principal.id
      for (const until = performance.now() + WAIT_MS; performance.now() < until; ) {
        if (await questions.answer(answer, ctx).catch(onlyFenced)) return
        const id = await waiting?.find({ owner, requestId, callId }, ctx)
        if (id === undefined) break
        if (await proceed(options, id, { callId, said: saidIn(answer) }, ctx)) return
      }
      throw questionUnknown({ requestId, callId })
    },

    async questions(ctx) {
      const running = await questions.open(ctx)
      const { id, scopes } = ctx.principal
      const owner = scopes.includes('admin') || scopes.includes('*') ? undefined : id
      const known = new Set(running.flatMap(({ turnId = [] }) => turnId))
      const interrupted = (await waiting?.interrupted(owner, known, ctx)) ?? []
      return [...running, ...interrupted.map(shownQuestion)].toSorted((a, b) => a.since - b.since)
    },

    async cancel(id, ctx) {
      try {
        await options.turns.streams.cancel(id, ctx)
      } catch (error) {
        const isUnknown = codeOf(error) === 'TURN_UNKNOWN' && isTurnId(id)
        if (!isUnknown || !(await proceed(options, id, undefined, ctx))) throw error
      }
    },
  }
}

/** Continues a turn in this worker, with an answer or to cancel it. False if it does not wait, or another worker has it. */
async function proceed(
  { waiting, runner, turns: { interrupted }, conversations }: InterruptedOptions,
  id: string,
  answer: Answer | undefined,
  ctx: CallContext
): Promise<boolean> {
  const { principal, trace, traceState } = ctx
  const prepare = async (state: Json, asked: WaitingQuestion | undefined) => {
    const turn = savedOf(state)
    const problems = asked?.dialog && answer ? await formProblems(asked.dialog, answer.said) : []
    if (problems.length > 0) throw invalid('content', problems.join('; '))
    interrupted.check(principal.id)
    return (await isThere(conversations, turn, ctx)) ? await runner.prepare(turn, ctx) : undefined
  }
  const taken = await waiting?.take(id, { owner: principal.id, callId: answer?.callId, prepare }, ctx).catch(onlyBusy)
  if (!taken) return false
  const { prepared, answered, questions, requestId } = taken
  const answers = new Map(answer && answered ? [[answer.callId, { said: answer.said, asked: answered }]] : [])
  const stop = new AbortController()
  // a turn is stored only when it has its conversation
  const cancel = () => answer ?? stop.abort(turnCancelled('the client cancelled the turn'))
  interrupted.begin({ ...taken, owner: principal.id }, (journal, signal) => {
    const own = { principal, requestId, signal: AbortSignal.any([signal, stop.signal]), ...definedOf({ trace, traceState }) }
    return runner.resume(prepared, { journal, interrupted: { questions, answers }, restored: cancel }, own)
  })
  return true
}

interface Answer {
  readonly callId: string
  readonly said: PersonAnswer
}

const shownQuestion = (question: ChatQuestion) => ({ ...question, arguments: shownArguments(question.arguments) })

function onlyBusy(error: unknown): undefined {
  if (codeOf(error) !== 'LEASE_BUSY') throw error
}

/** Another worker has taken the turn, or can take it. */
function onlyFenced(error: unknown): undefined {
  if (codeOf(error) !== 'STORE_FENCED') throw error
}

/** A conversation that the turn was creating is not stored yet. */
async function isThere(conversations: Conversations, { exists, conversationId }: SavedTurn, ctx: CallContext): Promise<boolean> {
  if (!exists) return true
  try {
    await conversations.turns(conversationId, { from: 1, limit: 1 }, ctx)
    return true
  } catch (error) {
    if (codeOf(error) === 'CONVERSATION_UNKNOWN') return false
    throw error
  }
}
