import { type CallContext, codeOf, type SvcError, svcError } from '@svc/core'
import type {
  Chat,
  CheckOrder,
  Json,
  MessagePart,
  ModelCallBegun,
  ModelCallEnd,
  ModelCallEvent,
  ModelCalls,
  ModelMessage,
  ModelParameters,
  NamedCall,
  OpenRequest,
  RequestField,
  Run,
  SelectionRequest,
  Teams,
  TurnEnd,
  TurnRequest,
  Workflows,
} from '@svc/core/contracts'
import { agentLacks, keyInvalid, notFound } from './errors.ts'
import type { HiddenSteps } from './hidden-steps.ts'
import type { Target } from './names.ts'

type Agent = Extract<Target, { readonly agent: string }>

/** The services of agents. */
export interface AgentServices {
  readonly modelCalls: ModelCalls
  readonly chat: Chat | undefined
  readonly teams: Teams | undefined
  readonly workflows: Workflows | undefined
  readonly hidden: HiddenSteps
}

/** Agents: profiles, teams and workflows, called like models. */
export interface Agents {
  stream(agent: Agent, call: NamedCall, ctx: CallContext): AsyncIterable<ModelCallEvent>
  /** The `start` of an answer, without a call. Throws INVALID_VALUE for a field that the agent cannot use. */
  check(agent: Agent, order: Pick<CheckOrder, 'request' | 'defaults'>, ctx: CallContext): Promise<ModelCallBegun>
  /** The model of an agent, to count tokens. */
  selectOf(agent: Agent): SelectionRequest
}

export function createAgents(services: AgentServices): Agents {
  const selectOf = ({ kind, agent }: Agent): SelectionRequest => (kind === 'profile' ? { profile: agent } : {})
  return {
    selectOf,
    async check(agent, order, ctx) {
      const { request } = order
      checkFields(request, agent)
      if (agent.kind !== 'profile') return startOfRun(agent, request)
      const { dropped, ...start } = await services.modelCalls.check({ ...order, select: selectOf(agent) }, ctx)
      return { ...start, ...droppedOf(request, dropped) }
    },
    stream: (agent, call, ctx) =>
      agent.kind === 'profile' ? streamTurn(services, agent, call, ctx) : streamRun(services, agent, call, ctx),
  }
}

const PARAMETERS = [
  'temperature',
  'topP',
  'topK',
  'stop',
  'seed',
  'frequencyPenalty',
  'presencePenalty',
  'logitBias',
  'reasoningEffort',
  'reasoningTokens',
  'parallelToolCalls',
  'responseFormat',
] as const satisfies readonly (keyof ModelParameters)[]

/** Fields that no agent can use, as its answer is made of several calls of a model, with the values that it can use. */
const UNUSABLE = [
  ['n', 1],
  ['logprobs', undefined],
  ['toolChoice', 'auto', 'none'],
] as const satisfies readonly (readonly [keyof OpenRequest, ...unknown[]])[]

function checkFields(request: OpenRequest, { kind }: Agent): void {
  for (const [name, ...usable] of UNUSABLE)
    if (request[name] !== undefined && !(usable as readonly unknown[]).includes(request[name]))
      throw agentLacks(
        name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`),
        kind
      )
}

/** The turn of a profile, which is not stored. */
function turnOf(agent: Agent, { request, defaults, limits }: NamedCall, messages: readonly ModelMessage[]): TurnRequest {
  const { tools, responseSchema, maxTokens } = request
  const parameters = Object.fromEntries(
    PARAMETERS.filter(name => request[name] !== undefined).map(name => [name, request[name]])
  ) as ModelParameters
  return {
    message: '',
    messages,
    keep: false,
    profile: agent.agent,
    parameters,
    reasoning: true,
    ...(request.toolChoice === 'none' ? { tools: [] } : tools ? { clientTools: tools } : {}),
    ...(responseSchema === undefined ? {} : { responseSchema }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(defaults ? { defaults } : {}),
    ...(limits?.timeoutMs === undefined ? {} : { timeoutMs: limits.timeoutMs }),
  }
}

/** A turn of chat. Calls of client tools end it. */
async function* streamTurn(
  { chat, hidden }: AgentServices,
  agent: Agent,
  call: NamedCall,
  ctx: CallContext
): AsyncGenerator<ModelCallEvent, void> {
  if (!chat) throw notFound(`${agent.kind}:${agent.agent}`)
  const { request } = call
  checkFields(request, agent)
  const turn = turnOf(agent, call, await hidden.inserted(request.messages, ctx))
  let failure: SvcError | undefined
  for await (const event of chat.stream(turn, ctx)) {
    if (event.type === 'start')
      yield { type: 'start', provider: event.provider, model: event.model, ...droppedOf(request, event.dropped) }
    else if (event.type === 'reasoning') yield { type: 'reasoning', text: event.content }
    else if (event.type === 'token') yield { type: 'text', text: event.content }
    else if (event.type === 'error') {
      const { code, message, details } = event.error
      failure = svcError(code, message, { details: { ...details } })
    } else if (event.type === 'end') {
      yield* await endOfTurn(event, hidden, failure, ctx)
      if (failure) throw failure
    }
  }
}

/** The fields of the request that the model does not get. The profile can have set others. */
function droppedOf(request: OpenRequest, fields: readonly RequestField[] = []) {
  const isAsked = (field: RequestField) => {
    if (field === 'strictTools') return request.tools?.some(({ strict }) => strict === true) === true
    return CONTENT.has(field) || request[field as keyof OpenRequest] !== undefined
  }
  const dropped = fields.filter(isAsked)
  return dropped.length === 0 ? {} : { dropped }
}

/** Kinds of content, which are in messages. */
const CONTENT: ReadonlySet<RequestField> = new Set(['cacheHints', 'images', 'imageUrls', 'files', 'audio'])

/** The text and the reasoning of the model. Its opaque data stays with the steps that svc keeps. */
const shownPart = (part: MessagePart): readonly MessagePart[] => {
  if (part.type === 'text') return [part]
  return part.type === 'reasoning' && part.text !== '' ? [{ type: 'reasoning', text: part.text }] : []
}

/** The last events of a turn as events of a model call. */
async function endOfTurn(
  end: TurnEnd,
  hidden: HiddenSteps,
  failure: SvcError | undefined,
  ctx: CallContext
): Promise<ModelCallEvent[]> {
  const calls = end.calls && end.status === 'completed' ? await hidden.keep(end.calls, end.made ?? [], ctx) : []
  const said = (end.made ?? []).filter(({ role }) => role === 'assistant').flatMap(({ parts }) => parts.flatMap(shownPart))
  const { total: _, ...usage } = end.usage
  const finish = calls.length > 0 ? 'tool_calls' : end.finish === 'tool_calls' ? 'stop' : (end.finish ?? 'stop')
  const last: ModelCallEnd = {
    type: 'end',
    status: end.status,
    provider: end.provider,
    model: end.model,
    message: { role: 'assistant', parts: [...said, ...calls] },
    finish,
    usage,
    tried: [],
    durationMs: end.durationMs,
    ...(failure ? { error: { code: failure.code, message: failure.message, details: failure.details ?? {} } } : {}),
  }
  if (end.status !== 'completed') return [last]
  return [...calls, { type: 'usage', usage }, { type: 'finish', reason: finish }, last]
}

/** Milliseconds between two looks at a run: `Workflows.settled` returns earlier when it ends. */
const LOOK_MS = 30_000

/** Fields without which the answer of a run would be another than the caller asked for. */
function checkRunFields({ tools = [], responseSchema, responseFormat, stop }: OpenRequest, kind: string): void {
  if (tools.length > 0) throw agentLacks('tools', kind)
  if (responseSchema !== undefined) throw agentLacks('response_schema', kind)
  if (responseFormat !== undefined) throw agentLacks('response_format', kind)
  if (stop !== undefined) throw agentLacks('stop', kind)
}

/** Fields that are used, checked, or only matter to models. A run drops the others. */
const RUN_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'tools',
  'n',
  'logprobs',
  'toolChoice',
  'parallelToolCalls',
  'native',
  'gathered',
  'cacheKey',
  'toolCallDeltas',
] satisfies (keyof OpenRequest)[])

/** The `start` of a run. Throws INVALID_VALUE for a field that a run cannot use. */
function startOfRun({ kind, agent }: Agent, request: OpenRequest): ModelCallBegun {
  checkRunFields(request, kind)
  const isDropped = (name: RequestField) => !RUN_FIELDS.has(name) && request[name as keyof OpenRequest] !== undefined
  const dropped = (Object.keys(request) as (keyof OpenRequest)[]).filter(isDropped)
  return { type: 'start', provider: 'svc', model: `${kind}:${agent}`, ...(dropped.length === 0 ? {} : { dropped }) }
}

/** A run of a team or workflow, whose result is the answer. It is cancelled when the caller leaves. */
async function* streamRun(
  { teams, workflows }: AgentServices,
  agent: Agent,
  { request, idempotencyKey }: NamedCall,
  ctx: CallContext
): AsyncGenerator<ModelCallEvent, void> {
  const { kind, agent: name } = agent
  if (!workflows || (kind === 'team' && !teams)) throw notFound(`${kind}:${name}`)
  checkFields(request, agent)
  const start = startOfRun(agent, request)
  const who = { provider: start.provider, model: start.model }
  const began = performance.now()
  const task = taskOf(request.messages)
  const keyed = withKey(idempotencyKey, ctx)
  const started =
    kind === 'team' ? await teams!.start({ team: name, task }, keyed) : await startWorkflow(workflows, name, task, keyed)
  yield start
  let run = started
  try {
    while (run.status === 'running') run = await workflows.settled(run.id, LOOK_MS, ctx)
  } finally {
    // the context of a caller who left cannot cancel: its signal has aborted
    if (run.status === 'running') void cancelled(workflows, run, ctx)
  }
  const base = { type: 'end', ...who, usage: usageOf(run), tried: [], durationMs: performance.now() - began } as const
  if (run.status === 'failed') {
    const error = run.error ?? { code: 'RUN_FAILED', message: `the ${kind} failed`, details: {} }
    yield { ...base, status: 'failed', error }
    throw svcError(error.code, error.message, { details: { ...error.details } })
  }
  const text = textOf(run.result)
  yield { type: 'text', text }
  yield { type: 'usage', usage: base.usage }
  yield { type: 'finish', reason: 'stop' }
  yield { ...base, status: 'completed', finish: 'stop', message: { role: 'assistant', parts: [{ type: 'text', text }] } }
}

async function cancelled(workflows: Workflows, { id }: Run, ctx: CallContext): Promise<void> {
  await workflows.cancel(id, { ...ctx, signal: AbortSignal.timeout(LOOK_MS) }).catch(() => undefined)
}

/** Starts a workflow with the task: as `input.task` if its input is an object with that property, else as the whole input. */
function startWorkflow(workflows: Workflows, workflow: string, task: string, ctx: CallContext): Promise<Run> {
  const { idempotencyKey } = ctx
  return workflows.start({ workflow, input: inputOf(task), ...(idempotencyKey === undefined ? {} : { idempotencyKey }) }, ctx)
}

const KEY = /^[\x21-\x7e]{1,255}$/

/** The context with the key of a run. Throws INVALID_VALUE. */
function withKey(idempotencyKey: string | undefined, ctx: CallContext): CallContext {
  if (idempotencyKey === undefined) return ctx
  if (!KEY.test(idempotencyKey)) throw keyInvalid()
  return { ...ctx, idempotencyKey }
}

/** A task that is a JSON object is the input itself, so that clients can set each property. */
function inputOf(task: string): Json {
  try {
    const value = JSON.parse(task) as Json
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (error) {
    if (!(error instanceof SyntaxError) && codeOf(error) !== undefined) throw error
  }
  return { task }
}

/** The task: the text of the last message of the user. A team sees nothing else. */
function taskOf(messages: readonly ModelMessage[]): string {
  const last = messages.findLast(({ role }) => role === 'user')
  return last?.parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n') ?? ''
}

/** The runs of svc count tokens without a direction. */
const usageOf = ({ spent }: Run) => ({ input: 0, output: spent.tokens })

interface TeamOutput {
  readonly result?: unknown
  readonly answer?: unknown
  readonly partial?: { readonly reason: string }
  readonly positions?: { readonly [member: string]: string }
}

/** What the members of a team said that a budget stopped. */
const unfinished = ({ reason }: { readonly reason: string }, positions: TeamOutput['positions'] = {}): string =>
  [
    `The team stopped before its end: ${reason}`,
    ...Object.entries(positions).map(([name, text]) => `## ${name}\n\n${text}`),
  ].join('\n\n')

/** The result of a run as text: that of a team has its answer in `result`. */
function textOf(result: Json | undefined): string {
  if (typeof result === 'string') return result
  const { result: inner, answer, partial, positions } = Object(result) as TeamOutput
  if (typeof inner === 'string') return inner
  if (typeof answer === 'string') return answer
  return partial ? unfinished(partial, positions) : JSON.stringify(result ?? null)
}
