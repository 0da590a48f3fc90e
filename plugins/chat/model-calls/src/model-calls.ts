import type { CallContext } from '@svc/core'
import type {
  EmbedOrder,
  EmbedReply,
  EmbedResult,
  ModelCallEnd,
  ModelCallOrder,
  ModelCalls,
  ModelEvent,
  ModelMessage,
  Peers,
  Selected,
  Selection,
  SelectionRequest,
  WorkerMetrics,
} from '@svc/core/contracts'
import { lazyStream } from '@svc/plugin-kit'
import { type CallServices, ModelCallRun, type ProviderCounts } from './call.ts'
import { tokensOf } from './context-window.ts'
import { modelBroke } from './errors.ts'
import { type ModelCandidate, candidateOf, type Fitting, fitRequest } from './request.ts'

/** Calls models. Each call is a `ModelCallRun`. */
export function createModelCalls(services: CallServices, selection: Selection): ModelCalls {
  const select = ({ selected, select: wish = {} }: Selecting, ctx: CallContext) => selected ?? selection.select(wish, ctx)
  const calls: ModelCalls = {
    stream(order, ctx) {
      const { selected } = order
      return selected ? new ModelCallRun(services, { order, selected }, ctx) : selecting(services, order, select, ctx)
    },
    async reply(order, ctx) {
      const gathered: ModelCallOrder = { ...order, request: { ...order.request, gathered: true } }
      return endOf(calls.stream(gathered, ctx))
    },
    async embed(order, ctx) {
      return embed(services, order, await select(order, ctx), ctx)
    },
    async check({ request, defaults, ...wish }, ctx) {
      const at = await selectedCandidate(services, await select(wish, ctx), ctx)
      const { dropped } = fitRequest(request, at, { defaults: new Set(defaults), isSelected: true })
      return { type: 'start', provider: at.provider, model: at.model, ...(dropped.length > 0 ? { dropped } : {}) }
    },
    async countTokens(order, ctx) {
      const at = await selectedCandidate(services, await select(order, ctx), ctx)
      return tokensOf(fitRequest(order.request, at, LENIENT).request, at, ctx)
    },
  }
  return calls
}

type Selecting = { readonly selected?: Selected; readonly select?: SelectionRequest }
type Select = (order: Selecting, ctx: CallContext) => Selected | Promise<Selected>

const selecting = (services: CallServices, order: ModelCallOrder, select: Select, ctx: CallContext) =>
  lazyStream(async () => new ModelCallRun(services, { order, selected: await select(order, ctx) }, ctx))

function selectedCandidate(services: CallServices, selected: Selected, ctx: CallContext): Promise<ModelCandidate> {
  const { timeout_ms: timeoutMs, first_token_timeout_ms: firstMs } = services.config
  const lookup = { ...services, selected, firstMs, timeoutMs, until: performance.now() + timeoutMs }
  return candidateOf(lookup, selected, undefined, ctx)
}

/** A count refuses no field, as no model is called: a model without the field gets the request without it. */
const LENIENT: Fitting = { defaults: new Set(['tools']), isSelected: false }

/** Runs a call to its end. Throws its error. */
async function endOf(events: ReturnType<ModelCalls['stream']>): Promise<ModelCallEnd> {
  let end: ModelCallEnd | undefined
  for await (const event of events) if (event.type === 'end') end = event
  if (!end) throw new Error('a model call ended without its end event')
  return end
}

/** A vector can have this many numbers. The largest known model has 12,288. */
const LONGEST_VECTOR = 65_536

/** Runs a call whose answer are vectors. */
async function embed(services: CallServices, order: EmbedOrder, selected: Selected, ctx: CallContext): Promise<EmbedResult> {
  const { request, limits } = order
  let reply: EmbedReply | undefined
  const open = (at: ModelCandidate, callCtx: CallContext) =>
    vectorEvents(at, order, callCtx, vectors => {
      reply = vectors
    })
  const job: ModelCallOrder = { request: { messages: request.input.map(asMessage) }, ...(limits ? { limits } : {}) }
  const end = await endOf(new ModelCallRun(services, { order: job, selected, open }, ctx))
  if (!reply) throw modelBroke(end.provider, 'returned no vectors')
  const { usage, provider, model, cost } = end
  return { ...reply, usage, provider, model, ...(cost === undefined ? {} : { cost }) }
}

const asMessage = (input: string | readonly number[]): ModelMessage => ({
  role: 'user',
  parts: [{ type: 'text', text: typeof input === 'string' ? input : input.join(' ') }],
})

/** Embeddings as events of a model call, so that all policies apply. */
async function* vectorEvents(
  { source, provider, model }: ModelCandidate,
  { request }: EmbedOrder,
  ctx: CallContext,
  take: (reply: EmbedReply) => void
): AsyncGenerator<ModelEvent, void> {
  if (!source.embed) throw modelBroke(provider, 'lists embeddings as a feature, but has no method for them')
  const reply = await source.embed({ ...request, model }, ctx)
  checkVectors(provider, reply, request.input.length)
  take(reply)
  yield { type: 'usage', usage: reply.usage }
  yield { type: 'finish', reason: 'stop' }
}

/** The reply of a provider is the reply of a server, so its form is checked. Throws MODEL_FAILED. */
function checkVectors(provider: string, reply: EmbedReply, count: number): void {
  const { vectors, usage } = Object(reply) as { readonly vectors?: unknown; readonly usage?: { readonly input?: unknown } }
  const isVector = (vector: unknown) =>
    Array.isArray(vector) && vector.length > 0 && vector.length <= LONGEST_VECTOR && vector.every(Number.isFinite)
  if (!Array.isArray(vectors) || vectors.length !== count || !vectors.every(isVector))
    throw modelBroke(provider, `returned no list of ${count} vectors`)
  if (typeof usage?.input !== 'number') throw modelBroke(provider, 'returned no usage of its vectors')
}

type Counts = readonly (readonly [provider: string, count: number])[]

const NAME = 'model-calls'

// `own` of this process, or of another worker, has written the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? []) as unknown as Counts

export function createProviderCounts(peers: Peers | undefined): ProviderCounts {
  const counts = new Map<string, number>()
  return {
    asked: provider => add(counts, provider, 1),
    async read(ctx) {
      if (!peers) return counts
      const sum = new Map<string, number>()
      for (const worker of await peers.metrics(ctx)) addAll(sum, partOf(worker))
      return sum
    },
    own: metrics => ({ ...metrics, [NAME]: [...counts] }),
    inherit: metrics => addAll(counts, partOf(metrics)),
  }
}

const add = (counts: Map<string, number>, provider: string, count: number) =>
  void counts.set(provider, (counts.get(provider) ?? 0) + count)

function addAll(counts: Map<string, number>, more: Counts) {
  for (const [provider, count] of more) add(counts, provider, count)
}
