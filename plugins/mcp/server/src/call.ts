import { codeOf, type Events, type SchemaProblem, isTree, type Log, messageOf, type CallContext, withTimeout } from '@svc/core'
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
import { type ToolSchema, toolSchema } from '@svc/plugin-kit/tool-schema'
import { CallLimit, type RunningLimits } from './call-limit.ts'
import type { PublishedTool } from './catalogue.ts'
import { argumentsInvalid, callLate, toolBroken } from './errors.ts'
import { encodeResult, failure } from './result.ts'
import { wordsOf } from './words.ts'

export type Arguments = { readonly [name: string]: Json | undefined }

export interface CallLimits extends RunningLimits {
  /** Milliseconds that a call has, its wait for a place included, where neither caller nor tool say otherwise. */
  readonly timeoutMs: number
  /** Bytes of a result as JSON. */
  readonly resultBytes: number
}

/** 64 calls at once, 8 a tool, 10 MiB, 60 s: decisions.md section 2. */
export const CALL_LIMITS: CallLimits = { atOnce: 64, perTool: 8, waiting: 1_024, timeoutMs: 60_000, resultBytes: 10 * 1_048_576 }

/** What a tool tells on its way. */
export type Told = Extract<ToolStep, { readonly type: 'progress' | 'log' }>

interface CallOptions {
  readonly timeoutMs?: number
  /** What the caller can be asked for, and its answers; absent: nobody can be asked. */
  readonly dialog?: ToolDialog
  /** Takes what the tool tells on its way; absent: it goes nowhere. */
  readonly tell?: (told: Told) => void
}

/** What came of a call. */
export type CallEnd =
  | {
      readonly type: 'result'
      readonly result: ToolResult
      /** The result as the protocol writes it: JSON of `{content, structuredContent?, isError?, _meta?}`. */
      readonly json: string
      /** What the tool threw; then the result has its words. */
      readonly thrown?: unknown
    }
  | Extract<ToolStep, { readonly type: 'input' }>

/** Calls of published tools, within the limits that all share. */
export interface Calls {
  /**
   * One call. Throws INVALID_VALUE (the arguments break the schema), TIMEOUT, RATE_LIMITED, TOOL_EXECUTION_FAILED (the tool's own schema is none), and what the
   * signal aborted with. What the tool throws is a result.
   */
  call(published: PublishedTool, args: Arguments, ctx: CallContext, options?: CallOptions): Promise<CallEnd>
}

export function createCalls(limits: CallLimits, events: Events, log: Log): Calls {
  const seats = new CallLimit(limits)
  const checks = new WeakMap<PublishedTool, ToolSchema>()
  return {
    async call(published, args, ctx, options = {}) {
      const { name, tool } = published
      const ended = tellCall(events, published, ctx)
      let isSeated = false
      // what a tool asks of others has the time that the caller gives, not what it has of itself
      const timed = options.timeoutMs === undefined ? ctx : { ...ctx, deadline: Date.now() + options.timeoutMs }
      const work = async (signal: AbortSignal) => {
        const seat = seats.take(name, { signal })
        if (seat) await seat
        isSeated = true
        return runBounded({ published, args, ctx: timed, options, log }, limits.resultBytes, signal)
      }
      try {
        const check = checks.get(published) ?? (await checkOf(published))
        checks.set(published, check)
        mustFit(published, check, args)
        const limitMs = options.timeoutMs ?? tool.timeoutMs ?? limits.timeoutMs
        const end = await withTimeout(limitMs, work, { signal: ctx.signal, late: () => callLate(name, limitMs) })
        ended({ end })
        return end
      } catch (error) {
        ended({ thrown: error })
        throw error
      } finally {
        // a tool that hears of no end keeps nobody else from working
        if (isSeated) seats.leave(name)
      }
    },
  }
}

interface Call {
  readonly published: PublishedTool
  readonly args: Arguments
  readonly ctx: CallContext
  readonly options: CallOptions
  readonly log: Log
}

async function runBounded({ published, args, ctx, options, log }: Call, limit: number, signal: AbortSignal): Promise<CallEnd> {
  try {
    return bounded(await run(published, args, { ...ctx, signal }, options), limit)
  } catch (error) {
    signal.throwIfAborted()
    log.debug({ err: error, tool: published.name, request_id: ctx.requestId }, 'a tool failed')
    return failedWith(error)
  }
}

async function checkOf({ name, tool }: PublishedTool): Promise<ToolSchema> {
  try {
    return await toolSchema(tool.parameters)
  } catch (error) {
    throw toolBroken(name, error)
  }
}

const SMALL = 10_000
const TOLD = 10

function mustFit(published: PublishedTool, schema: ToolSchema, args: Arguments): void {
  // the check fills in defaults, and what a tool is given is what its caller wrote
  const faults = (how: 'all' | 'first') => schema.check(published.hasDefaults ? structuredClone(args) : args, how)
  try {
    const [first] = faults('first')
    if (first === undefined) return
    const all = JSON.stringify(args).length < SMALL ? faults('all') : [first]
    throw argumentsInvalid(`The arguments do not fit: ${all.slice(0, TOLD).map(words).join('; ')}`, placeOf(first), first.message)
  } catch (error) {
    if (codeOf(error) === 'ARGUMENTS_TOO_LONG') throw argumentsInvalid(messageOf(error), 'arguments', 'too long')
    if (error instanceof RangeError)
      throw argumentsInvalid('The arguments are nested too deeply', 'arguments', 'nested too deeply')
    throw codeOf(error) === 'INVALID_VALUE' ? error : toolBroken(published.name, error)
  }
}

const words = (fault: SchemaProblem) => `${(fault.path || 'the whole').slice(0, 200)} ${fault.message.slice(0, 500)}`
const placeOf = ({ path }: SchemaProblem) => (path === '' ? 'arguments' : `arguments.${path.slice(0, 200)}`)

type Answer = ToolResult | Extract<ToolStep, { readonly type: 'input' }>

const NOBODY: ToolDialog = { can: [] }

function run(published: PublishedTool, args: Arguments, ctx: CallContext, options: CallOptions): Answer | Promise<Answer> {
  const { tool } = published
  if (!tool.asks) return lastWord(tool, args, ctx, options)
  const { dialog = NOBODY, tell } = options
  const consent = consentTo(published, dialog)
  if ('instead' in consent) return consent.instead
  const answer = lastWord(tool, args, ctx, { dialog: consent.dialog, ...(tell && { tell }) })
  return answer.then(one => (isInput(one) ? consented(one) : one))
}

async function lastWord(tool: Tool, args: Arguments, ctx: CallContext, { dialog = NOBODY, tell }: CallOptions): Promise<Answer> {
  if (!tool.run) return tool.call(args, ctx)
  for await (const step of tool.run(args, dialog, ctx)) {
    if (ctx.signal.aborted) break
    if (step.type === 'result') return step.result
    if (step.type === 'input') return step
    tell?.(step)
  }
  ctx.signal.throwIfAborted()
  throw new TypeError('the tool did not say what came of it')
}

const isInput = (answer: Answer): answer is Extract<ToolStep, { readonly type: 'input' }> =>
  (answer as { readonly type?: unknown } | undefined)?.type === 'input'

function bounded(answer: Answer, limit: number): CallEnd {
  return isInput(answer) ? answer : { type: 'result', ...encodeResult(answer, limit) }
}

/** What was thrown, as a result that says so. */
const failedWith = (thrown: unknown): CallEnd => ({
  type: 'result',
  ...encodeResult(failure(wordsOf(thrown, SPEECHLESS).slice(0, LONGEST)), Number.POSITIVE_INFINITY),
  thrown,
})

/** Characters of what went wrong. */
const LONGEST = 100_000
const SPEECHLESS = 'The tool failed and did not say why.'

/** The same, for callers that are told in words what a call could not do: it throws only what the signal aborted with. */
export async function callOrTell(...[calls, published, args, ctx, options]: CallParts): Promise<CallEnd> {
  try {
    return await calls.call(published, args, ctx, options)
  } catch (error) {
    ctx.signal.throwIfAborted()
    return failedWith(error)
  }
}

type CallParts = [calls: Calls, ...Parameters<Calls['call']>]

/** How a call ended: with an end, or with what was thrown. */
type CallOutcome = { readonly end: CallEnd } | { readonly thrown: unknown }

interface Failure {
  readonly error_class: McpErrorClass
  readonly error: string
}

/** Tells the bus that a call begins, and answers what tells its end. Neither arguments nor results are told, so none of the tool's own words. */
function tellCall(events: Events, { name, set }: PublishedTool, ctx: CallContext): (outcome: CallOutcome) => void {
  const begun = performance.now()
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
    const told = data((performance.now() - begun) / 1000)
    if (failure) void events.publish(McpToolError, { ...told, ...failure }, ctx)
    else void events.publish(McpToolCompleted, told, ctx)
  }
}

const failedAs = (error: string, error_class: McpErrorClass = 'tool_error'): Failure => ({ error_class, error })

function failureIn(outcome: CallOutcome, { signal }: CallContext): Failure | undefined {
  if ('thrown' in outcome)
    return signal.aborted ? failedAs('its caller left, or cancelled it', 'cancelled') : failureOfThrown(outcome.thrown)
  const { end } = outcome
  if (end.type === 'input' || end.result.isError !== true) return undefined
  return end.thrown === undefined ? failedAs('the tool says that it failed') : failureOfThrown(end.thrown)
}

function failureOfThrown(thrown: unknown): Failure {
  const code = codeOf(thrown)
  if (code === 'MCP_CALL_FAILED') {
    const { class: error_class, message } = failureOf(thrown)
    return failedAs(message, error_class)
  }
  if (code === 'TIMEOUT') return failedAs('it took too long', 'timeout')
  if (code === 'INVALID_VALUE') return failedAs('the arguments break its schema')
  return failedAs(code === 'RATE_LIMITED' ? 'too many calls wait already' : 'the tool failed')
}

type Input = Extract<ToolStep, { readonly type: 'input' }>

/** Whether a person has allowed a call: then how the tool may go on asking; else what the caller is told instead. */
type Consent = { readonly dialog: ToolDialog } | { readonly instead: ToolResult | Input }

const KEY = 'svc_consent'
/** Before the tool's own state, once the person has said yes. A caller that forges it could have forged the answer: the person is the caller's. */
const GIVEN = 'svc_consent;'

/** Asks for a tool that wants a person asked, through the caller. */
function consentTo({ name, tool }: PublishedTool, dialog: ToolDialog): Consent {
  const { can, answers, state } = dialog
  if (!tool.asks) return { dialog }
  if (!can.includes('elicitation/create'))
    return { instead: failure('Not allowed: a person has to be asked first, and this caller can ask nobody.') }
  if (state?.startsWith(GIVEN)) return { dialog: { can, ...(answers && { answers }), ...stateOf(state.slice(GIVEN.length)) } }
  const answer = answers?.[KEY]
  if (answer === undefined) return { instead: question(name) }
  return isYes(answer) ? { dialog: { can } } : { instead: failure('Not allowed: the person who was asked said no.') }
}

/** What the tool asks for, so that the consent comes back with the answer. */
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
          properties: { allow: { type: 'boolean', title: 'Let it run', default: false } },
          required: ['allow'],
        },
      },
    },
  },
})
