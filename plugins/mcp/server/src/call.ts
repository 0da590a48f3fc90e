import {
  type CallContext,
  codeOf,
  type Events,
  isTree,
  type Log,
  messageOf,
  redactData,
  redactText,
  type SchemaProblem,
  withTimeout,
} from '@svc/core'
import {
  type Json,
  type McpErrorClass,
  McpToolCalled,
  McpToolCompleted,
  McpToolError,
  type McpToolEvent,
  type Tool,
  type ToolDialog,
  type ToolResult,
  type ToolStep,
} from '@svc/core/contracts'
import { failureOf } from '@svc/mcp-protocol'
import { createSemaphore, logToolFailure } from '@svc/plugin-kit'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import type { PublishedTool } from './catalogue.ts'
import { argumentsInvalid, callLate, callsWaiting, toolBroken } from './errors.ts'
import { encodeResult, failure, errorTextOf } from './result.ts'

export type CallArguments = { readonly [name: string]: Json | undefined }

export interface CallLimits {
  /** Concurrent calls. */
  readonly atOnce: number
  /** Concurrent calls of one tool. */
  readonly perTool: number
  /** Maximum length of the queue. Further calls are rejected. */
  readonly waiting: number
  /** Default timeout of a call in milliseconds, including the time in the queue. Caller and tool can override it. */
  readonly timeoutMs: number
  /** Maximum size of a result as JSON, in bytes. */
  readonly resultBytes: number
}

/** The limits of calls in each worker. */
export const CALL_LIMITS: CallLimits = { atOnce: 64, perTool: 8, waiting: 1_024, timeoutMs: 60_000, resultBytes: 10 * 1_048_576 }

/** A step that a tool sends before its result. */
export type ToolNotification = Extract<ToolStep, { readonly type: 'progress' | 'log' }>

interface CallOptions {
  readonly timeoutMs?: number
  /** The questions that the caller supports, and its answers. Without a dialog the tool cannot ask. */
  readonly dialog?: ToolDialog
  /** Receives progress and log messages of the tool. */
  readonly notify?: (notification: ToolNotification) => void
}

/** The outcome of a call that did not throw. */
export type CallEnd =
  | {
      readonly type: 'result'
      readonly result: ToolResult
      /** The result in the form of the protocol: JSON of `{content, structuredContent?, isError?, _meta?}`. */
      readonly json: string
      /** The error that the tool threw. The result contains its text. */
      readonly thrown?: unknown
    }
  | Extract<ToolStep, { readonly type: 'input' }>

/** Calls published tools within the shared limits. */
export interface ToolCaller {
  /**
   * Calls a tool. Throws INVALID_VALUE (the arguments do not match the schema), TIMEOUT, RATE_LIMITED, TOOL_EXECUTION_FAILED (the schema of the tool is
   * invalid) and the reason of an aborted signal. An error of the tool becomes a result.
   */
  call(published: PublishedTool, args: CallArguments, ctx: CallContext, options?: CallOptions): Promise<CallEnd>
}

export function createCalls(limits: CallLimits, events: Events, log: Log): ToolCaller {
  const { atOnce: places, perTool: placesEach, waiting } = limits
  const limit = createSemaphore({ places, placesEach, waiting, busy: callsWaiting })
  const checks = new WeakMap<PublishedTool, ParametersCheck>()
  return {
    async call(published, args, ctx, options = {}) {
      const { name, tool } = published
      const reportEnd = reportCall(events, published, ctx)
      using running = new DisposableStack()
      // the services that a tool calls get the timeout of the caller, not the default of the tool
      const timed = options.timeoutMs === undefined ? ctx : { ...ctx, deadline: Date.now() + options.timeoutMs }
      const work = async (signal: AbortSignal) => {
        const taken = limit.take(name, signal)
        const place = taken instanceof Promise ? await taken : taken
        if (signal.aborted) place[Symbol.dispose]()
        signal.throwIfAborted()
        // a tool that ignores its signal must not block other calls: its place is free when the caller has an answer
        running.use(place)
        return runBounded({ published, args, ctx: timed, options, log }, limits.resultBytes, signal)
      }
      try {
        const check = checks.get(published) ?? (await checkOf(published))
        checks.set(published, check)
        checkArguments(published, check, args)
        const limitMs = options.timeoutMs ?? tool.timeoutMs ?? limits.timeoutMs
        const end = await withTimeout(limitMs, work, { signal: ctx.signal, late: () => callLate(name, limitMs) })
        reportEnd({ end })
        return end
      } catch (error) {
        reportEnd({ thrown: error })
        throw error
      }
    },
  }
}

interface Call {
  readonly published: PublishedTool
  readonly args: CallArguments
  readonly ctx: CallContext
  readonly options: CallOptions
  readonly log: Log
}

async function runBounded({ published, args, ctx, options, log }: Call, limit: number, signal: AbortSignal): Promise<CallEnd> {
  try {
    return bounded(await run(published, args, { ...ctx, signal }, options), limit)
  } catch (error) {
    signal.throwIfAborted()
    logToolFailure(log, published.name, { thrown: error, plugin: published.plugin, requestId: ctx.requestId })
    return errorResult(error)
  }
}

async function checkOf({ name, tool }: PublishedTool): Promise<ParametersCheck> {
  try {
    return await toolSchema(tool.parameters)
  } catch (error) {
    throw toolBroken(name, error)
  }
}

/** Arguments up to this length are checked for all problems, longer ones for the first. */
const SMALL = 10_000
const MAX_PROBLEMS = 10

function checkArguments(published: PublishedTool, schema: ParametersCheck, args: CallArguments): void {
  // the check writes defaults into its input, but the tool must get the arguments of the caller
  const problems = (how: 'all' | 'first') => schema.check(published.hasDefaults ? structuredClone(args) : args, how)
  try {
    const [first] = problems('first')
    if (first === undefined) return
    const all = JSON.stringify(args).length < SMALL ? problems('all') : [first]
    throw argumentsInvalid(
      `The arguments do not match the schema: ${all.slice(0, MAX_PROBLEMS).map(describeProblem).join('; ')}`,
      fieldOf(first),
      first.message
    )
  } catch (error) {
    if (codeOf(error) === 'ARGUMENTS_TOO_LONG') throw argumentsInvalid(messageOf(error), 'arguments', 'too long')
    if (error instanceof RangeError)
      throw argumentsInvalid('The arguments are nested too deeply', 'arguments', 'nested too deeply')
    throw codeOf(error) === 'INVALID_VALUE' ? error : toolBroken(published.name, error)
  }
}

const describeProblem = ({ path, message }: SchemaProblem) => `${(path || 'arguments').slice(0, 200)} ${message.slice(0, 500)}`
const fieldOf = ({ path }: SchemaProblem) => (path === '' ? 'arguments' : `arguments.${path.slice(0, 200)}`)

type Answer = ToolResult | Extract<ToolStep, { readonly type: 'input' }>

const NO_DIALOG: ToolDialog = { can: [] }

function run(published: PublishedTool, args: CallArguments, ctx: CallContext, options: CallOptions): Answer | Promise<Answer> {
  const { tool } = published
  if (!tool.asks) return finalStep(tool, args, ctx, options)
  const { dialog = NO_DIALOG, notify } = options
  const consent = consentTo(published, dialog)
  if ('instead' in consent) return consent.instead
  const answer = finalStep(tool, args, ctx, { dialog: consent.dialog, ...(notify && { notify }) })
  return answer.then(item => (isInput(item) ? consented(item) : item))
}

async function finalStep(
  tool: Tool,
  args: CallArguments,
  ctx: CallContext,
  { dialog = NO_DIALOG, notify }: CallOptions
): Promise<Answer> {
  if (!tool.run) return tool.call(args, ctx)
  for await (const step of tool.run(args, dialog, ctx)) {
    if (ctx.signal.aborted) break
    if (step.type === 'result') return step.result
    if (step.type === 'input') return step
    notify?.(step)
  }
  ctx.signal.throwIfAborted()
  throw new TypeError('the tool ended without a result')
}

const isInput = (answer: Answer): answer is Extract<ToolStep, { readonly type: 'input' }> =>
  (answer as { readonly type?: unknown } | undefined)?.type === 'input'

function bounded(given: Answer, limit: number): CallEnd {
  const answer = redactData(given)
  return isInput(answer) ? answer : { type: 'result', ...encodeResult(answer, limit) }
}

/** Converts an error to a result. */
const errorResult = (thrown: unknown): CallEnd => ({
  type: 'result',
  ...encodeResult(failure(redactText(errorTextOf(thrown, NO_REASON)).slice(0, MAX_ERROR_TEXT)), Number.POSITIVE_INFINITY),
  thrown,
})

const MAX_ERROR_TEXT = 100_000
const NO_REASON = 'The tool failed without an error message.'

/** Calls a tool and converts every error to a result. Throws only the reason of an aborted signal. */
export async function callForResult(...[calls, published, args, ctx, options]: CallDependencies): Promise<CallEnd> {
  try {
    return await calls.call(published, args, ctx, options)
  } catch (error) {
    ctx.signal.throwIfAborted()
    return errorResult(error)
  }
}

type CallDependencies = [calls: ToolCaller, ...Parameters<ToolCaller['call']>]

type CallOutcome = { readonly end: CallEnd } | { readonly thrown: unknown }

interface Failure {
  readonly error_class: McpErrorClass
  readonly error: string
}

/** Publishes the begin of a call and returns a function that publishes its end. Events contain no arguments, results or texts of the tool. */
function reportCall(events: Events, { name, set }: PublishedTool, ctx: CallContext): (outcome: CallOutcome) => void {
  const startedAt = performance.now()
  const call_id = crypto.randomUUID()
  const data = (duration: number): McpToolEvent => ({
    source: 'mcp',
    tool_name: name,
    server: set,
    direction: 'inbound',
    call_id,
    duration,
    timestamp: Date.now(),
  })
  void events.publish(McpToolCalled, data(0), ctx)
  return outcome => {
    const failure = failureIn(outcome, ctx)
    const event = data((performance.now() - startedAt) / 1000)
    if (failure) void events.publish(McpToolError, { ...event, ...failure }, ctx)
    else void events.publish(McpToolCompleted, event, ctx)
  }
}

const failedAs = (error: string, error_class: McpErrorClass = 'tool_error'): Failure => ({ error_class, error })

function failureIn(outcome: CallOutcome, { signal }: CallContext): Failure | undefined {
  if ('thrown' in outcome)
    return signal.aborted ? failedAs('the caller cancelled the call', 'cancelled') : failureOfThrown(outcome.thrown)
  const { end } = outcome
  if (end.type === 'input' || end.result.isError !== true) return undefined
  return end.thrown === undefined ? failedAs('the tool reported a failure') : failureOfThrown(end.thrown)
}

function failureOfThrown(thrown: unknown): Failure {
  const code = codeOf(thrown)
  if (code === 'MCP_CALL_FAILED') {
    const { class: error_class, message } = failureOf(thrown)
    return failedAs(message, error_class)
  }
  if (code === 'TIMEOUT') return failedAs('the call timed out', 'timeout')
  if (code === 'INVALID_VALUE') return failedAs('the arguments do not match the schema')
  return failedAs(code === 'RATE_LIMITED' ? 'too many calls are waiting' : 'the tool failed')
}

type Input = Extract<ToolStep, { readonly type: 'input' }>

/** The consent of the user: the dialog for the tool if the user agreed, otherwise the result for the caller. */
type Consent = { readonly dialog: ToolDialog } | { readonly instead: ToolResult | Input }

const KEY = 'svc_consent'
/** Prefix of the tool's state after consent. A caller that forges it could also have forged the answer, because the user is the caller's. */
const GIVEN = 'svc_consent;'

/** Asks the user for consent, through the caller, if the tool requires it. */
function consentTo({ name, tool }: PublishedTool, dialog: ToolDialog): Consent {
  const { can, answers, state } = dialog
  if (!tool.asks) return { dialog }
  if (!can.includes('elicitation/create'))
    return {
      instead: failure('Not allowed: the tool requires consent of the user, and this client does not support elicitation.'),
    }
  if (state?.startsWith(GIVEN)) return { dialog: { can, ...(answers && { answers }), ...stateOf(state.slice(GIVEN.length)) } }
  const answer = answers?.[KEY]
  if (answer === undefined) return { instead: question(name) }
  return isYes(answer) ? { dialog: { can } } : { instead: failure('Not allowed: the user declined.') }
}

/** Marks the state of a question, so that the consent returns with the answer. */
const consented = (asked: Input): Input => ({ ...asked, state: GIVEN + (asked.state ?? '') })

const stateOf = (state: string) => (state === '' ? {} : { state })

const isYes = (answer: unknown) =>
  isTree(answer) && answer.action === 'accept' && isTree(answer.content) && answer.content.allow === true

const question = (name: string): Input => ({
  type: 'input',
  requests: {
    [KEY]: {
      method: 'elicitation/create',
      params: {
        mode: 'form',
        message: `May the tool "${name}" run?`,
        requestedSchema: {
          type: 'object',
          properties: { allow: { type: 'boolean', title: 'Allow', default: false } },
          required: ['allow'],
        },
      },
    },
  },
})
