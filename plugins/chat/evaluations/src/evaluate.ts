import { type CallContext, type Log, redactText } from '@svc/core'
import { toPublicError, turnOf } from '@svc/api-types'
import type {
  Chat,
  Conversations,
  EvaluationCase,
  EvaluationCheck,
  EvaluationCheckResult,
  EvaluationModel,
  EvaluationRequest,
  EvaluationResult,
  ModelCalls,
  ModelMessage,
  ModelRef,
  Prices,
  PublicError,
  Selection,
  TurnRequest,
  Usage,
} from '@svc/core/contracts'
import { requestProblems } from './cases.ts'
import { type CheckServices, runCheck } from './checks.ts'
import { profileUnknown, requestInvalid } from './errors.ts'
import { findTurns, openTurn, type TurnRef } from './replay.ts'
import type { Outline } from './report.ts'
import { type RecordedCall, recordedCalls, type ToolRecords } from './tool-records.ts'

export interface EvaluationDependencies {
  readonly chat: Chat
  readonly conversations: Conversations
  readonly modelCalls: ModelCalls
  readonly selection: Selection
  readonly prices: Prices | undefined
  readonly records: ToolRecords
  readonly log: Log
}

/** A turn that is about to run. */
interface OpenSample {
  readonly turn: TurnRequest
  readonly input: string
  readonly reference?: string
  readonly calls?: readonly RecordedCall[]
  readonly checks: readonly EvaluationCheck[]
}

/** One turn of a case at a target. */
interface Sample {
  readonly case: string
  readonly target: string
  readonly repeat: number
  readonly run: (ctx: CallContext) => Promise<EvaluationResult>
}

export interface EvaluationPlan {
  readonly outline: Outline
  readonly samples: readonly Sample[]
  readonly concurrency: number
}

const CONCURRENCY = 4
/** The name of the target that stands for stored replies. */
const STORED = 'stored'
const MOST_REPLY = 4_000
const NO_TOKENS = { input: 0, output: 0 }

/** Checks a request. Throws INVALID_VALUE with all problems, also for a profile that does not exist, and CONVERSATION_UNKNOWN. */
export async function checkRequest(
  request: EvaluationRequest,
  { selection, conversations }: EvaluationDependencies,
  ctx: CallContext
): Promise<void> {
  const problems = await requestProblems(request)
  if (problems.length > 0) throw requestInvalid(problems)
  const known = (await selection.profiles(ctx)).profiles.map(({ name }) => name)
  const { targets = [], cases = [], judge, embedding } = request
  const judges = cases.flatMap(({ checks = [] }) => checks.flatMap(check => check.judge ?? []))
  for (const { profile } of [...targets, ...cases, ...judges, judge ?? {}, embedding ?? {}])
    if (profile !== undefined && !known.includes(profile)) throw profileUnknown(profile, known)
  const named = request.replay?.conversation_id
  if (named !== undefined) await conversations.turns(named, { from: 1, limit: 1 }, ctx)
}

/** The samples of a request, in their order. Throws the errors of `checkRequest`. */
export async function planOf(
  request: EvaluationRequest,
  services: EvaluationDependencies,
  ctx: CallContext
): Promise<EvaluationPlan> {
  await checkRequest(request, services, ctx)
  const { concurrency = CONCURRENCY } = request
  const { names, samples, targets } = request.replay
    ? await replaySamples(request, services, ctx)
    : caseSamples(request, services)
  return { outline: { cases: names, targets, total: samples.length }, samples, concurrency }
}

interface Samples {
  readonly names: readonly string[]
  readonly targets: readonly string[]
  readonly samples: readonly Sample[]
}

function caseSamples(request: EvaluationRequest, services: EvaluationDependencies): Samples {
  const { cases = [], targets = [{}], repeat: usual = 1 } = request
  const names = targetNames(targets)
  const samples = cases.flatMap(entry =>
    targets.flatMap((target, at) =>
      Array.from({ length: entry.repeat ?? usual }, (_, index): Sample => {
        const about = { case: entry.name, target: names[at]!, repeat: index + 1 }
        const open = async () => openCase(entry, target)
        return { ...about, run: ctx => runSample(about, open, request, services, ctx) }
      })
    )
  )
  return { names: cases.map(({ name }) => name), targets: names, samples }
}

async function replaySamples(request: EvaluationRequest, services: EvaluationDependencies, ctx: CallContext): Promise<Samples> {
  const { targets = [{}], repeat = 1 } = request
  const replay = request.replay!
  const refs = await findTurns(services.conversations, replay, ctx)
  const names = [STORED, ...targetNames(targets, [STORED])]
  const openRef = (ref: TurnRef, own: CallContext) => openTurn(services.conversations, ref, replay, own)
  const samples = refs.flatMap(ref => [
    {
      case: ref.name,
      target: STORED,
      repeat: 1,
      run: (own: CallContext) => storedResult(ref, openRef, services, own),
    },
    ...targets.flatMap((target, at) =>
      Array.from({ length: repeat }, (_, index): Sample => {
        const about = { case: ref.name, target: names[at + 1]!, repeat: index + 1 }
        const open = async (own: CallContext): Promise<OpenSample> => {
          const { messages, input, reply, calls, checks } = await openRef(ref, own)
          const turn: TurnRequest = { ...target, message: '', messages, keep: false }
          return { turn, input, reference: reply, calls, checks }
        }
        return { ...about, run: own => runSample(about, open, request, services, own) }
      })
    ),
  ])
  return { names: refs.map(({ name }) => name), targets: names, samples }
}

/** The name of each target: its profile or model, with a number if another has it. */
function targetNames(targets: readonly EvaluationModel[], taken: readonly string[] = []): string[] {
  const names: string[] = []
  for (const { profile, provider, model } of targets) {
    const name = [profile, [provider, model].filter(Boolean).join('/')].filter(Boolean).join(' ') || 'default'
    names.push([...taken, ...names].includes(name) ? `${name} (${names.length + 1})` : name)
  }
  return names
}

/** The members of a target take precedence over those of the case. */
function openCase(entry: EvaluationCase, target: EvaluationModel): OpenSample {
  const { message = '', messages, record, checks = [], name: _name, repeat: _repeat, ...body } = entry
  const turn = { ...turnOf({ ...body, ...target, message }), keep: false }
  return {
    turn: messages ? { ...turn, messages: messages.map(messageOf) } : turn,
    input: messages?.at(-1)?.content ?? message,
    checks,
    ...(record === undefined ? {} : { calls: recordedCalls(record) }),
  }
}

const messageOf = ({ role, content }: NonNullable<EvaluationCase['messages']>[number]): ModelMessage => ({
  role,
  parts: [{ type: 'text', text: content }],
})

type About = Pick<EvaluationResult, 'case' | 'target' | 'repeat'>

/** Runs one turn and its checks. A failure is a result; only an abort throws. */
async function runSample(
  about: About,
  open: (ctx: CallContext) => Promise<OpenSample>,
  request: EvaluationRequest,
  services: EvaluationDependencies,
  ctx: CallContext
): Promise<EvaluationResult> {
  let unrecorded = 0
  try {
    const sample = await open(ctx)
    const requestId = `eval_${crypto.randomUUID()}`
    using recorded = sample.calls && services.records.begin(requestId, ctx.principal.id, sample.calls)
    const reply = await services.chat.reply(sample.turn, { ...ctx, requestId })
    ctx.signal.throwIfAborted()
    unrecorded = recorded?.unrecorded ?? 0
    const { provider, model, usage, durationMs, response } = reply
    const cost = await services.prices?.cost({ provider, model }, usage, ctx)
    const tools = reply.toolsUsed.map(({ tool }) => tool)
    const { input, reference } = sample
    const measured = { tools, durationMs, ...(cost === undefined ? {} : { cost }) }
    const subject = { input, reply: response, ...measured, ...(reference === undefined ? {} : { reference }) }
    const parts: CheckServices = { modelCalls: services.modelCalls, judge: request.judge, embedding: request.embedding }
    // one by one: judges call models, too
    const checks: EvaluationCheckResult[] = []
    for (const check of sample.checks) checks.push(await runCheck(check, subject, parts, ctx))
    return {
      ...about,
      status: checks.some(({ error }) => error) ? 'error' : checks.every(({ passed }) => passed) ? 'passed' : 'failed',
      reply: cutReply(response),
      checks,
      provider,
      model,
      tokens: { input: usage.input, output: usage.output },
      ...(cost === undefined ? {} : { cost }),
      duration_ms: durationMs,
      tools,
      unrecorded,
    }
  } catch (error) {
    ctx.signal.throwIfAborted()
    return { ...failedResult(about, error, services), unrecorded }
  }
}

const cutReply = (text: string) => (text.length > MOST_REPLY ? `${text.slice(0, MOST_REPLY)}…` : text)

function failedResult(about: About, thrown: unknown, { log }: EvaluationDependencies): EvaluationResult {
  const error = publicErrorOf(thrown)
  if (error.code === 'INTERNAL_ERROR') log.error({ err: thrown, case: about.case }, 'a case of an evaluation failed')
  return { ...about, status: 'error', reply: '', checks: [], error, tokens: NO_TOKENS, tools: [], unrecorded: 0 }
}

const MOST_MESSAGE = 1_000

/** Without details: they can be large, and of other parts of svc. */
function publicErrorOf(thrown: unknown): PublicError {
  const { code, message } = toPublicError(thrown)
  if (code === 'INTERNAL_ERROR') return { code, message: 'internal error', details: {} }
  return { code, message: redactText(message).slice(0, MOST_MESSAGE), details: {} }
}

/** The stored turn as a result, to compare with. */
async function storedResult(
  ref: TurnRef,
  open: (ref: TurnRef, ctx: CallContext) => ReturnType<typeof openTurn>,
  services: EvaluationDependencies,
  ctx: CallContext
): Promise<EvaluationResult> {
  const about = { case: ref.name, target: STORED, repeat: 1 }
  try {
    const { reply, tools, steps, checks } = await open(ref, ctx)
    const last = steps.at(-1)
    const cost = await costOf(steps, services, ctx)
    return {
      ...about,
      status: 'passed',
      reply: cutReply(reply),
      checks: checks.map(check => ({ check: Object.keys(check)[0]!, passed: true })),
      ...(last === undefined ? {} : { provider: last.provider, model: last.model }),
      tokens: {
        input: steps.reduce((sum, { usage }) => sum + usage.input, 0),
        output: steps.reduce((sum, { usage }) => sum + usage.output, 0),
      },
      ...(cost === undefined ? {} : { cost }),
      tools,
      unrecorded: 0,
    }
  } catch (error) {
    ctx.signal.throwIfAborted()
    return failedResult(about, error, services)
  }
}

/** Undefined if the model of a step has no price. */
async function costOf(
  steps: readonly (ModelRef & { readonly usage: Usage })[],
  { prices }: EvaluationDependencies,
  ctx: CallContext
): Promise<number | undefined> {
  if (!prices || steps.length === 0) return undefined
  const costs = await Promise.all(steps.map(({ provider, model, usage }) => prices.cost({ provider, model }, usage, ctx)))
  return costs.some(cost => cost === undefined) ? undefined : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0)
}

export const keyOf = ({ case: name, target, repeat }: About) => JSON.stringify([name, target, repeat])

/** Runs the samples, at most `concurrency` at the same time, and yields each result when it is there. Ends at once after an abort. */
export async function* runSamples(
  { samples, concurrency }: Pick<EvaluationPlan, 'samples' | 'concurrency'>,
  ctx: CallContext
): AsyncGenerator<EvaluationResult> {
  const stop = new AbortController()
  const own = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) }
  const aborted = Promise.withResolvers<never>()
  aborted.promise.catch(() => undefined)
  const onAbort = () => aborted.reject(ctx.signal.reason)
  ctx.signal.addEventListener('abort', onAbort, { once: true })
  const running = new Map<Sample, Promise<{ readonly sample: Sample; readonly result: EvaluationResult }>>()
  const waiting = samples.values()
  const begin = () => {
    const { value: sample, done } = waiting.next()
    if (done) return
    const work = sample.run(own).then(result => ({ sample, result }))
    work.catch(() => undefined)
    running.set(sample, work)
  }
  try {
    ctx.signal.throwIfAborted()
    for (let place = 0; place < concurrency; place++) begin()
    while (running.size > 0) {
      const { sample, result } = await Promise.race([...running.values(), aborted.promise])
      running.delete(sample)
      begin()
      yield result
    }
  } finally {
    ctx.signal.removeEventListener('abort', onAbort)
    stop.abort(new DOMException('the evaluation has ended', 'AbortError'))
  }
}
