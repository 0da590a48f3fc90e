import { type CallContext, codeOf, redactData, redactText, timestamp, withTimeout } from '@svc/core'
import {
  type PublicError,
  type Tool,
  type ToolCallEvent,
  type ToolCallPart,
  type ToolCallRequest,
  ToolCompleted,
  type ToolDialog,
  ToolFailed,
  type ToolStep,
  type ToolVerdict,
} from '@svc/core/contracts'
import { logToolFailure, modeAllows } from '@svc/plugin-kit'
import { callDenied, invalid, toolForbidden, toolLate, toolMissing, toPublicError } from './errors.ts'
import { type OpenDialog, runDialog } from './tool-dialog.ts'
import { type Arguments, argumentProblem, boundedResult, errorText, questionOf, verdictOn } from './tool-use.ts'
import type { ChatServices } from './turn.ts'

type Requests = OpenDialog['requests']

/** A call of a tool outside of a turn: a person or a program is the caller, and reads the events. */
export async function* callTool(
  services: ChatServices,
  request: ToolCallRequest,
  ctx: CallContext
): AsyncGenerator<ToolCallEvent, void> {
  const { tool: name } = request
  const tool = await findTool(services, name, ctx)
  await checkArguments(services, name, tool, request.arguments)
  const callId = `call_${crypto.randomUUID()}`
  const verdict = await permission(services, request, { tool, callId }, ctx)
  const stop = new AbortController()
  const own = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) }
  const call = new DirectCall(services, request, { tool, callId, verdict, ctx: own })
  const begun = performance.now()
  let status: 'completed' | 'failed' | 'cancelled' = 'cancelled'
  try {
    yield { type: 'start', requestId: ctx.requestId, callId, tool: name, timestamp: timestamp() }
    try {
      status = (yield* call.run()) ? 'completed' : 'failed'
    } catch (error) {
      ctx.signal.throwIfAborted()
      status = 'failed'
      yield { type: 'error', error: call.explain(error) }
    }
    yield { type: 'end', callId, tool: name, status, durationMs: elapsed(begun), timestamp: timestamp() }
  } finally {
    stop.abort(new Error('the reader has left'))
    const data = { turn: '', conversation_id: '', tool: name, call_id: callId, duration_ms: elapsed(begun) }
    void services.events.publish(status === 'completed' ? ToolCompleted : ToolFailed, data, ctx)
  }
}

const elapsed = (begun: number) => Math.round(performance.now() - begun)

/** The tool, if the mode of the server allows it. Throws TOOL_NOT_FOUND, INVALID_VALUE. */
async function findTool({ tools, modes, selection }: ChatServices, name: string, ctx: CallContext): Promise<Tool> {
  const tool = tools.get(name)
  if (!tool) throw toolMissing(name)
  if (tool.modes) throw invalid('name', 'names a tool that is available only in turns')
  const mode = await selection.mode(ctx)
  if (modeAllows(mode, modes.get(mode), tool)) return tool
  const allowed = tools.entries().flatMap(([other, entry]) => (modeAllows(mode, modes.get(mode), entry) ? [other] : []))
  throw toolForbidden(name, mode, allowed)
}

async function checkArguments({ config, log }: ChatServices, name: string, tool: Tool, args: Arguments): Promise<void> {
  if (JSON.stringify(args).length > config.tool_arguments_limit)
    throw invalid('arguments', `exceed ${config.tool_arguments_limit} characters`)
  const problem = await argumentProblem(name, tool, args, log)
  if (problem) throw invalid(problem.field, `cannot be used: ${problem.text}`)
}

/** The verdict of the taps of `toolCall`. Throws FORBIDDEN for a denied call, and for a question without a reader. */
async function permission(
  { hooks, log, selection }: ChatServices,
  { tool: name, arguments: args, interactive }: ToolCallRequest,
  { tool, callId }: { readonly tool: Tool; readonly callId: string },
  ctx: CallContext
): Promise<ToolVerdict | undefined> {
  const part: ToolCallPart = { type: 'tool_call', id: callId, tool: name, arguments: args }
  const about = { part, conversationId: '', mode: await selection.mode(ctx), verdict: hooks.toolCall, log }
  const verdict = await verdictOn(tool, about, ctx)
  if (verdict?.verdict === 'deny') throw callDenied(name, verdict.reason)
  const question = verdict?.verdict === 'answer' ? undefined : questionOf(name, tool, verdict)
  if (question !== undefined && interactive !== true)
    throw callDenied(name, `it needs the approval of a person (${question}); set interactive to true, and answer the ask event`)
  return verdict
}

interface DirectCallOptions {
  readonly tool: Tool
  readonly callId: string
  readonly verdict: ToolVerdict | undefined
  readonly ctx: CallContext
}

/** One running call, with its questions. */
class DirectCall {
  readonly #services: ChatServices
  readonly #request: ToolCallRequest
  readonly #tool: Tool
  readonly #callId: string
  readonly #verdict: ToolVerdict | undefined
  readonly #ctx: CallContext
  readonly #limitMs: number
  readonly #args: Arguments
  #asked = 0

  constructor(services: ChatServices, request: ToolCallRequest, { tool, callId, verdict, ctx }: DirectCallOptions) {
    this.#services = services
    this.#request = request
    this.#tool = tool
    this.#callId = callId
    this.#verdict = verdict
    this.#ctx = ctx
    this.#args = verdict?.verdict === 'change' ? verdict.arguments : request.arguments
    this.#limitMs = request.timeoutMs ?? tool.timeoutMs ?? services.config.tool_timeout_ms
  }

  /** Returns whether the tool has succeeded. */
  async *run(): AsyncGenerator<ToolCallEvent, boolean> {
    const verdict = this.#verdict
    if (verdict?.verdict === 'answer') return yield* this.#end(verdict.result)
    if (verdict?.verdict === 'change') await checkArguments(this.#services, this.#request.tool, this.#tool, this.#args)
    const question = questionOf(this.#request.tool, this.#tool, verdict)
    if (question !== undefined) {
      const answer = yield* this.#ask(question)
      if (!answer?.allow) throw callDenied(this.#request.tool, answer ? (answer.reason ?? 'denied') : 'no answer in time')
    }
    const can: ToolDialog['can'] = this.#request.interactive ? ['elicitation/create'] : []
    const { timeoutMs } = this.#request
    const call = { tool: this.#tool, args: this.#args, can, timeoutMs, limited: () => this.#limited() }
    const answer = ({ requests }: OpenDialog) => this.#input(requests)
    return yield* this.#end(yield* runDialog({ ...call, answer, progress: progressOf }, this.#ctx))
  }

  async *#end(result: unknown): AsyncGenerator<ToolCallEvent, boolean> {
    const { content, structured, isError } = boundedResult(redactData(result), this.#services.config.tool_result_limit)
    const success = isError !== true
    yield { type: 'result', callId: this.#callId, success, content, ...(structured === undefined ? {} : { structured }) }
    return success
  }

  #limited() {
    const late = { signal: this.#ctx.signal, late: () => toolLate(this.#request.tool, this.#limitMs) }
    const until = performance.now() + this.#limitMs
    return <T>(work: () => Promise<T>) => withTimeout(Math.max(0, Math.ceil(until - performance.now())), () => ofTool(work), late)
  }

  async *#input(requests: Requests): AsyncGenerator<ToolCallEvent, NonNullable<ToolDialog['answers']>> {
    const shown = redactData(requests)
    const other = Object.values(requests).find(({ method }) => method !== 'elicitation/create')
    if (other || !this.#request.interactive)
      throw callDenied(
        this.#request.tool,
        other ? `it needs ${other.method}` : 'it needs input; set interactive to true, and answer the ask event'
      )
    const answer = yield* this.#ask('The tool needs input.', shown)
    const declined = { action: answer ? 'decline' : 'cancel' }
    const answers = answer?.allow ? answer.answers : Object.fromEntries(Object.keys(requests).map(key => [key, declined]))
    return answers ?? {}
  }

  async *#ask(question: string, requests?: Requests) {
    const { tool } = this.#request
    // each question has its own id: a late answer to the one before must not answer this one
    const questionId = `${this.#callId}.${++this.#asked}`
    const asked = { tool, arguments: this.#args, question, ...(requests === undefined ? {} : { requests }) }
    const waitMs = this.#services.config.ask_timeout_ms
    const pending = this.#services.questions.ask(questionId, waitMs, { conversationId: '', ...asked }, this.#ctx)
    // it can fail while the event is read; the await below throws that error
    pending.catch(() => undefined)
    yield { type: 'ask', callId: this.#callId, questionId, ...asked, until: Date.now() + waitMs } as const
    return await pending
  }

  /** The error for the caller. Errors of the tool go to the log as well. */
  explain(error: unknown): PublicError {
    const { tool } = this.#request
    if (!(error instanceof ToolThrew) && codeOf(error) !== undefined) return toPublicError(error)
    const thrown = error instanceof ToolThrew ? error.cause : error
    const { requestId } = this.#ctx
    logToolFailure(this.#services.log, tool, { thrown, plugin: this.#services.tools.owner(tool), requestId })
    const reason = redactText(errorText(thrown)).slice(0, MAX_REASON)
    return { code: 'TOOL_EXECUTION_FAILED', message: `the tool "${tool}" failed: ${reason}`, details: { tool, reason } }
  }
}

/** What a tool threw, whose code and details are not ours. */
class ToolThrew extends Error {
  constructor(cause: unknown) {
    super('the tool threw an error', { cause })
  }
}

async function ofTool<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new ToolThrew(error)
  }
}

const MAX_REASON = 2_000
const MAX_MESSAGE = 1_000

function progressOf({ progress, total, message }: Extract<ToolStep, { type: 'progress' }>): ToolCallEvent {
  return {
    type: 'progress',
    progress: Number(progress),
    ...(total === undefined ? {} : { total: Number(total) }),
    ...(message === undefined ? {} : { message: redactText(String(message).slice(0, MAX_MESSAGE)) }),
  }
}
