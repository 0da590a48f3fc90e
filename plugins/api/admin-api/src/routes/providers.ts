import {
  BOOLEAN,
  explain,
  INTEGER,
  list,
  NUMBER,
  nullable,
  OBJECT,
  object,
  ok,
  STRING,
  text,
  toPublicError,
  words,
} from '@svc/api-types'
import { type CallContext, type JsonSchema, type SlotView, withTimeout } from '@svc/core'
import type {
  Check,
  ModelAlias,
  ModelCallEnd,
  ModelCallOrder,
  ModelCalls,
  ModelHealth,
  ModelInfo,
  ModelList,
  ModelPrice,
  ModelState,
  Prices,
  Provider,
  Route,
  Selection,
} from '@svc/core/contracts'
import { isAdmin, notFound, timeRecord } from '../records.ts'

const PATH = '/api/v1/providers/:name'
const LIST_MS = 5_000
const [TEST_S, MOST_TEST_S] = [30, 120]
const MOST_TOKENS = 16

export interface ProviderServices {
  readonly providers: SlotView<Provider>
  readonly aliases: SlotView<ModelAlias>
  readonly checks: SlotView<Check>
  readonly modelCalls: ModelCalls
  readonly selection: Selection
  readonly prices?: Prices | undefined
  readonly health?: ModelHealth | undefined
}

const FEATURES = object({
  tool_calling: BOOLEAN,
  streaming: BOOLEAN,
  vision: BOOLEAN,
  supports: { ...(list(STRING) as object), description: 'Further features.' },
})
const LAST_ERROR: JsonSchema = {
  oneOf: [
    object({
      kind: STRING,
      message: { ...(nullable('string') as object), description: 'Only for callers with the scope admin.' },
      upstream_status: nullable('integer'),
      at: nullable('string'),
    }),
    { type: 'null' },
  ],
}
const PRICE: JsonSchema = {
  oneOf: [
    object({ input: NUMBER, output: NUMBER, cached_input: nullable('number'), cache_write: nullable('number') }),
    { type: 'null' },
  ],
  description: 'Per million tokens.',
}
const MODEL: JsonSchema = {
  ...(object({
    id: STRING,
    listed: { ...(BOOLEAN as object), description: 'False if the provider does not list the model, but a caller used it.' },
    context: nullable('integer'),
    output: nullable('integer'),
    features: FEATURES,
    aliases: list(STRING),
    price: PRICE,
    breaker: words('closed', 'half_open', 'open'),
    breaker_open_in: { ...(INTEGER as object), description: 'Number of workers in which the breaker is open.' },
    retry_at: { type: ['string', 'null'], format: 'date-time' },
    calls: INTEGER,
    failures: INTEGER,
    first_token_ms: { oneOf: [object({ last: INTEGER, mean: INTEGER }), { type: 'null' }] },
    last_error: LAST_ERROR,
  }) as object),
  title: 'ProviderModel',
}
const PROVIDER: JsonSchema = {
  ...(object({
    name: STRING,
    healthy: { type: ['boolean', 'null'], description: 'The result of the last probe; null if there was none.' },
    error: nullable('string'),
    requests: nullable('integer'),
    features: FEATURES,
    open: { ...(BOOLEAN as object), description: 'Whether the provider accepts models that are not listed.' },
    models: list(MODEL),
    models_error: { ...(nullable('string') as object), description: 'Reason why the provider cannot list its models.' },
    currency: nullable('string'),
  }) as object),
  title: 'ProviderDetail',
}
const ERROR = object({ success: BOOLEAN, error: STRING, error_code: STRING, details: OBJECT })
const TESTED: JsonSchema = {
  ...(object({
    success: BOOLEAN,
    provider: STRING,
    model: nullable('string'),
    first_token_ms: nullable('number'),
    duration_ms: NUMBER,
    tokens_used: { oneOf: [object({ input: INTEGER, output: INTEGER }), { type: 'null' }] },
    attempts: INTEGER,
    error: { oneOf: [ERROR, { type: 'null' }] },
  }) as object),
  title: 'ProviderTest',
}
const testBody: JsonSchema = {
  ...(object(
    {
      model: text('A model of the provider. Default: its first one.'),
      timeout: {
        type: 'number',
        exclusiveMinimum: 0,
        maximum: MOST_TEST_S,
        description: `Time limit in seconds; default ${TEST_S}.`,
      },
    },
    []
  ) as object),
  additionalProperties: false,
}

/** Routes for one provider: its state in all workers, and a test. */
export const createProviderRoutes = (services: ProviderServices): Record<string, Route> => ({
  provider: {
    method: 'GET',
    path: PATH,
    summary: 'Read the state of a provider and of its models',
    description: 'Counts, first-token times and breakers are those of all workers since their start.',
    scope: 'read',
    responses: ok('The provider.', PROVIDER),
    handle: async ({ params }, ctx) => ({ body: await detailRecord(services, params.name!, ctx) }),
  },
  provider_test: {
    method: 'POST',
    path: `${PATH}/test`,
    summary: 'Send a short message to a provider; the provider bills it',
    description:
      'A failed test is a result with status 200. Retries of chat.policy apply, but svc does not fall back to another model.',
    scope: 'admin',
    body: testBody,
    responses: ok('The result.', TESTED),
    async handle({ params, body }, ctx) {
      providerNamed(services, params.name!)
      return { body: await testProvider(services, params.name!, body as unknown as TestBody, ctx) }
    },
  },
})

interface TestBody {
  readonly model?: string | null
  readonly timeout?: number
}

function providerNamed({ providers }: ProviderServices, name: string): Provider {
  const provider = providers.get(name)
  if (!provider) throw notFound('provider', name)
  return provider
}

const modelsOf = (provider: Provider, ctx: CallContext): Promise<ModelList> =>
  withTimeout(LIST_MS, signal => provider.models({ ...ctx, signal }), ctx)

async function detailRecord(services: ProviderServices, name: string, ctx: CallContext) {
  const provider = providerNamed(services, name)
  const { checks, health, prices } = services
  const [listed, probed, states, currency] = await Promise.all([
    modelsOf(provider, ctx).catch(toPublicError),
    probedOf(checks.get('providers'), name, ctx),
    health?.states(ctx) ?? [],
    prices?.currency(ctx) ?? null,
  ])
  const own = states.filter(state => state.provider === name)
  const models: readonly ModelInfo[] = 'models' in listed ? listed.models : []
  const known = new Set(models.map(({ id }) => id))
  const all: readonly ModelInfo[] = [
    ...models,
    ...own.filter(({ model }) => !known.has(model)).map(({ model }) => ({ id: model })),
  ]
  return {
    name,
    ...probed,
    features: featuresRecord(provider.features),
    open: 'models' in listed ? listed.open : false,
    models: await Promise.all(
      all.map(async model =>
        modelRecord(model, {
          isListed: known.has(model.id),
          features: { ...provider.features, ...model.features },
          aliases: aliasesOf(services, name, model.id),
          price: await prices?.price({ provider: name, model: model.id }, ctx),
          state: own.find(state => state.model === model.id),
          isShown: isAdmin(ctx),
        })
      )
    ),
    models_error: 'models' in listed ? null : explain(listed, ctx.requestId).record.error,
    currency,
  }
}

/** The last probe of a provider, and the number of its requests. */
async function probedOf(check: Check | undefined, name: string, ctx: CallContext) {
  const report = await (check?.status ? check.status(ctx) : check?.probe(ctx))?.catch(() => undefined)
  const probed = Object(report?.detail?.[name]) as { healthy?: boolean; error?: string; requests?: number }
  return { healthy: probed.healthy ?? null, error: probed.error ?? null, requests: probed.requests ?? null }
}

const aliasesOf = ({ aliases }: ProviderServices, provider: string, model: string) =>
  aliases.entries().flatMap(([alias, ref]) => (ref.provider === provider && ref.model === model ? [alias] : []))

const featuresRecord = ({ tool_calling, streaming, vision, supports }: Provider['features']) => ({
  tool_calling,
  streaming,
  vision,
  supports: [...(supports ?? ['tool_choice', 'response_schema'])],
})

interface ModelAbout {
  readonly isListed: boolean
  readonly features: Provider['features']
  readonly aliases: readonly string[]
  readonly price: ModelPrice | undefined
  readonly state: ModelState | undefined
  /** Whether the caller sees messages of errors. */
  readonly isShown: boolean
}

const modelRecord = ({ id, context, output }: ModelInfo, { isListed, features, aliases, price, state, isShown }: ModelAbout) => ({
  id,
  listed: isListed,
  context: context ?? null,
  output: output ?? null,
  features: featuresRecord(features),
  aliases,
  price: price ? priceRecord(price) : null,
  ...stateRecord(state ?? UNCALLED),
  last_error: state?.lastError ? errorRecord(state.lastError, isShown) : null,
})

const priceRecord = ({ input, output, cachedInput, cacheWrite }: ModelPrice) => ({
  input,
  output,
  cached_input: cachedInput ?? null,
  cache_write: cacheWrite ?? null,
})

const UNCALLED = { breaker: 'closed', openIn: 0, calls: 0, failures: 0 } as const

const stateRecord = ({ breaker, openIn, retryAt, calls, failures, firstMs }: Omit<ModelState, 'provider' | 'model'>) => ({
  breaker,
  breaker_open_in: openIn,
  retry_at: timeRecord(retryAt),
  calls,
  failures,
  first_token_ms: firstMs ?? null,
})

const errorRecord = ({ kind, message, upstreamStatus, at }: NonNullable<ModelState['lastError']>, isShown: boolean) => ({
  kind,
  message: isShown && message !== '' ? message : null,
  upstream_status: upstreamStatus ?? null,
  at: timeRecord(at),
})

/** What a test has seen of its call. */
interface Tried {
  model: string | null
  attempts: number
  first: number | null
  end?: ModelCallEnd
}

/** One small call. It is counted and priced as any other; a cache does not answer it, because each message differs. */
async function testProvider(
  services: ProviderServices,
  name: string,
  { model = null, timeout = TEST_S }: TestBody,
  ctx: CallContext
) {
  const begun = performance.now()
  const tried: Tried = { model, attempts: 0, first: null }
  const error = await callOnce(services, name, Math.ceil(timeout * 1_000), tried, ctx).then(
    () => null,
    (thrown: unknown) => {
      ctx.signal.throwIfAborted()
      return explain(toPublicError(thrown), ctx.requestId).record
    }
  )
  const { end, first, attempts } = tried
  return {
    success: error === null,
    provider: name,
    model: end?.model ?? tried.model,
    first_token_ms: first === null ? null : rounded(first - begun),
    duration_ms: rounded(performance.now() - begun),
    tokens_used: end ? { input: end.usage.input, output: end.usage.output } : null,
    attempts,
    error,
  }
}

async function callOnce(
  services: ProviderServices,
  name: string,
  timeoutMs: number,
  tried: Tried,
  ctx: CallContext
): Promise<void> {
  tried.model ??= (await modelsOf(providerNamed(services, name), ctx)).models[0]?.id ?? null
  const asked = tried.model === null ? { provider: name } : { provider: name, model: tried.model }
  const selected = { ...(await services.selection.select(asked, ctx)), fallback: [] }
  const message = `Say OK. (${crypto.randomUUID().slice(0, 8)})`
  const request = { messages: [{ role: 'user', parts: [{ type: 'text', text: message }] }], maxTokens: MOST_TOKENS } as const
  const order: ModelCallOrder = { request, selected, defaults: ['maxTokens'], limits: { timeoutMs } }
  for await (const event of services.modelCalls.stream(order, ctx)) {
    if (event.type === 'start') tried.attempts++
    if (event.type === 'text' && event.text !== '') tried.first ??= performance.now()
    if (event.type === 'end') tried.end = event
  }
}

const rounded = (ms: number) => Number(ms.toFixed(1))
