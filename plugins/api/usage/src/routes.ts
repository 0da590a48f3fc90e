import { type CallContext, type JsonSchema, svcError } from '@svc/core'
import type { Prices, Route, Store } from '@svc/core/contracts'
import { addTo, type Counts, FIELDS, type Field, OTHER, type Step, STEP_MS } from './recorder.ts'
import { type By, fieldOf, floorTo, quantileOf, readUsage, sumsOf, type UsagePoint, type UsageQuery } from './reader.ts'

const object = (properties: Record<string, JsonSchema>, optional: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
})
const words = (allowed: readonly string[], description: string): JsonSchema => ({ type: 'string', enum: allowed, description })
const STRING: JsonSchema = { type: 'string' }
const INTEGER: JsonSchema = { type: 'integer' }
const NUMBER: JsonSchema = { type: 'number' }
const TIME: JsonSchema = { type: 'string', format: 'date-time' }
const time = (description: string): JsonSchema => ({
  type: 'string',
  format: 'date-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
  patternHint: 'must be a time such as 2026-01-31T12:00:00Z',
  description,
})

const METRICS = ['requests', 'errors', 'latency', 'tokens', 'cost'] as const
type Metric = (typeof METRICS)[number]
/** By what each metric can be counted. */
const OF_REQUESTS: readonly By[] = ['principal', 'route', 'status']
const OF_MODELS: readonly By[] = ['principal', 'provider', 'model', 'conversation', 'workflow']
const SERIES_BY: Readonly<Record<Metric, readonly By[]>> = {
  requests: OF_REQUESTS,
  errors: OF_REQUESTS,
  latency: OF_REQUESTS,
  tokens: OF_MODELS,
  cost: OF_MODELS,
}
const USAGE_BY: readonly By[] = [...OF_MODELS, 'tool', 'route', 'status']
/** Points of a series: two days of minutes, or three months of hours. */
const MOST_POINTS = 2_880
/** Lines of an answer; further labels are added up as `other`. */
const MOST_LINES = 50
const MOST_ROWS = 1_000
/** Without `from`: an hour of minutes, or a day of hours. */
const USUAL_MS: Readonly<Record<Step, number>> = { minute: 3_600_000, hour: 86_400_000 }

const principal: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  description: 'Counts only this principal. Requires the scope admin, except for your own.',
}
const range = {
  from: time('The start. It is rounded down to the start of a minute or hour.'),
  to: time('The end, exclusive, rounded up. Default: now.'),
  principal,
}

const seriesQuery: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['metric'],
  properties: {
    metric: words(METRICS, 'requests, errors (answers from 500 on), latency (milliseconds), tokens or cost.'),
    step: words(['minute', 'hour'], 'The width of a point; default minute.'),
    by: words([...new Set([...OF_REQUESTS, ...OF_MODELS])], 'One line for each of these.'),
    ...range,
  },
}
const usageQuery: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: { by: words(USAGE_BY, 'One row for each of these; default principal.'), ...range },
}

const numbers: JsonSchema = { type: 'array', items: { type: ['number', 'null'] } }
const series = object({
  metric: STRING,
  unit: STRING,
  step: STRING,
  from: TIME,
  to: TIME,
  times: { type: 'array', items: TIME },
  series: { type: 'array', items: object({ name: STRING, values: numbers, total: { type: ['number', 'null'] } }) },
})
const ofRequests = (type: string, description: string): JsonSchema => ({ type: [type, 'null'], description })
const row = object({
  name: STRING,
  requests: ofRequests('integer', 'Requests to the server; null where they are not counted by this, as by model.'),
  errors: ofRequests('integer', 'Requests with a status from 500 on; null as requests.'),
  latency_ms: ofRequests('number', 'Sum over the requests, or with by=tool over the calls; null where it is not measured.'),
  calls: { type: 'integer', description: 'Model calls; with by=tool, tool calls.' },
  failures: { type: 'integer', description: 'Failed calls.' },
  input_tokens: INTEGER,
  output_tokens: INTEGER,
  cached_tokens: INTEGER,
  reasoning_tokens: INTEGER,
  cost: NUMBER,
})
const usage = object({
  by: STRING,
  step: STRING,
  from: TIME,
  to: TIME,
  currency: STRING,
  rows: { type: 'array', items: row },
  total: row,
})

const ok = (description: string, schema: JsonSchema) => ({ '200': { description, schema } })

interface RouteOptions {
  readonly store: Store
  readonly prices: Prices | undefined
  /** Writes what the workers still hold. */
  readonly settle: (ctx: CallContext) => Promise<void>
}

export function createUsageRoutes(options: RouteOptions): Record<string, Route> {
  return { series: seriesRoute(options), usage: usageRoute(options) }
}

const seriesRoute = ({ store, prices, settle }: RouteOptions): Route => ({
  method: 'GET',
  path: '/api/v1/series',
  summary: 'Read requests, errors, latency, tokens or costs over time',
  description: 'The counts of all workers. Without by, latency has the lines mean, p50, p95 and p99; p values are estimates.',
  scope: 'read',
  untraced: true,
  query: seriesQuery,
  responses: ok('Points of equal width; null where there is nothing to measure.', series),
  async handle({ query }, ctx) {
    const metric = query.metric as Metric
    const by = byIn(query.by, SERIES_BY[metric], metric)
    const step = (query.step ?? 'minute') as Step
    const asked = rangeIn(query, step, USUAL_MS[step], ctx)
    if ((asked.to - asked.from) / STEP_MS[step] > MOST_POINTS) throw tooManyPoints(step)
    await settle(ctx)
    const points = await readUsage(store, { ...asked, step, by }, ctx)
    const times = Array.from(
      { length: Math.ceil((asked.to - asked.from) / STEP_MS[step]) },
      (_, at) => asked.from + at * STEP_MS[step]
    )
    const unit = metric === 'latency' ? 'ms' : metric === 'cost' ? ((await prices?.currency(ctx)) ?? 'none') : metric
    const lines = metric === 'latency' && by === undefined ? quantileLines(points, times) : linesOf(points, times, metric)
    return {
      body: { metric, unit, step, from: isoOf(asked.from), to: isoOf(asked.to), times: times.map(isoOf), series: lines },
    }
  },
})

const usageRoute = ({ store, prices, settle }: RouteOptions): Route => ({
  method: 'GET',
  path: '/api/v1/usage',
  summary: 'Read who used what: requests, model calls, tokens and costs',
  description:
    'The counts of all workers, by minute for ranges up to three hours, else by hour. Without from, the last 24 hours. Model calls of a conversation count when its turn has ended, and those of a workflow when its run has ended on the worker that made them; until then they are in the row none.',
  scope: 'read',
  untraced: true,
  query: usageQuery,
  responses: ok('The rows, the largest first, and their total.', usage),
  async handle({ query }, ctx) {
    const by = byIn(query.by ?? 'principal', USAGE_BY, 'usage')!
    const step = stepFor(query)
    const asked = rangeIn(query, step, USUAL_MS.hour, ctx)
    await settle(ctx)
    const points = await readUsage(store, { ...asked, step, by }, ctx)
    const sums =
      by === 'conversation' || by === 'workflow' ? await withRest(store, points, { ...asked, step, by }, ctx) : sumsOf(points)
    const total: Counts = FIELDS.map(() => 0)
    for (const counts of sums.values()) addTo(total, counts)
    const weight = (counts: Counts) =>
      fieldOf(counts, 'input') + fieldOf(counts, 'output') || fieldOf(counts, 'calls') || fieldOf(counts, 'requests')
    const rows = topOf(sums, MOST_ROWS, weight).map(([name, counts]) => rowWire(by, name, counts))
    const currency = (await prices?.currency(ctx)) ?? 'none'
    return {
      body: { by, step, from: isoOf(asked.from), to: isoOf(asked.to), currency, rows, total: rowWire(by, 'total', total) },
    }
  },
})

/** The model calls without conversation or workflow, or whose turn or run has not ended, as the row `none`. */
async function withRest(store: Store, points: readonly UsagePoint[], query: UsageQuery, ctx: CallContext) {
  const sums = sumsOf(points)
  const all = sumsOf(await readUsage(store, { ...query, by: 'model' }, ctx))
  const rest: Counts = FIELDS.map(() => 0)
  for (const counts of all.values()) addTo(rest, counts)
  for (const counts of sums.values())
    addTo(
      rest,
      counts.map(value => -value)
    )
  // the end of a turn can be in the range, and its model call before it
  const left = rest.map(value => Math.max(0, value))
  if (fieldOf(left, 'calls') > 0) addTo(createIn(sums, 'none'), left)
  return sums
}

function createIn(sums: Map<string, Counts>, name: string): Counts {
  const counts = sums.get(name) ?? FIELDS.map(() => 0)
  sums.set(name, counts)
  return counts
}

type Query = Readonly<Record<string, string>>

function byIn(given: string | undefined, allowed: readonly By[], what: string): By | undefined {
  if (given === undefined || allowed.includes(given as By)) return given as By | undefined
  throw svcError('INVALID_VALUE', `by cannot be ${given} for ${what}`, {
    details: { field: 'by', reason: `must be one of ${allowed.join(', ')}`, value: given, allowed },
    hint: `Use one of ${allowed.join(', ')}`,
  })
}

const LONGEST_OF_MINUTES_MS = 3 * 3_600_000

function stepFor({ from, to }: Query): Step {
  if (from === undefined) return 'hour'
  const end = to === undefined ? Date.now() : timeIn('to', to)
  const isRecent = Date.now() - timeIn('from', from) < 86_400_000
  return isRecent && end - timeIn('from', from) <= LONGEST_OF_MINUTES_MS ? 'minute' : 'hour'
}

function rangeIn(query: Query, step: Step, usualMs: number, ctx: CallContext): Pick<UsageQuery, 'from' | 'to' | 'principal'> {
  const end = query.to === undefined ? Date.now() : timeIn('to', query.to)
  const start = query.from === undefined ? end - usualMs : timeIn('from', query.from)
  if (start >= end)
    throw svcError('INVALID_VALUE', 'from must be before to', {
      details: { field: 'from', reason: 'must be before to', value: query.from ?? null },
    })
  const up = floorTo(step, end - 1) + STEP_MS[step]
  return { from: floorTo(step, start), to: up, principal: ownerOf(query.principal, ctx) }
}

function timeIn(field: string, text: string): number {
  const ms = Date.parse(text)
  if (!Number.isNaN(ms) && ms >= 0) return ms
  throw svcError('INVALID_VALUE', `${field} is not a time`, {
    details: { field, reason: 'must be a time', value: text.slice(0, 100) },
  })
}

/** The principal whose usage the caller sees; undefined for all. Throws FORBIDDEN. */
function ownerOf(asked: string | undefined, { principal: { id, scopes } }: CallContext): string | undefined {
  if (scopes.includes('admin') || scopes.includes('*')) return asked
  if (asked !== undefined && asked !== id)
    throw svcError('FORBIDDEN', 'only callers with the scope admin see the usage of other principals', {
      details: { required_scope: 'admin' },
      hint: 'Leave out principal to see your own',
    })
  return id
}

const isoOf = (ms: number) => new Date(ms).toISOString()

function valueOf(counts: Counts | undefined, metric: Metric): number | null {
  if (metric === 'tokens') return fieldOf(counts, 'input') + fieldOf(counts, 'output')
  if (metric !== 'latency') return fieldOf(counts, metric)
  const requests = fieldOf(counts, 'requests')
  return requests === 0 ? null : fieldOf(counts, 'latency') / requests
}

function linesOf(points: readonly UsagePoint[], times: readonly number[], metric: Metric) {
  const sums = sumsOf(points)
  const weight = (counts: Counts) => (metric === 'latency' ? fieldOf(counts, 'requests') : (valueOf(counts, metric) ?? 0))
  const names = new Set(
    [...sums]
      .sort((a, b) => weight(b[1]) - weight(a[1]))
      .slice(0, MOST_LINES)
      .map(([name]) => name)
  )
  const byTime = new Map(points.map(point => [point.start, gathered(point.counts, names)]))
  const shown = topOf(sums, MOST_LINES, weight)
  return shown.map(([name, sum]) => ({
    name: name || 'all',
    values: times.map(at => valueOf(byTime.get(at)?.get(name), metric)),
    total: valueOf(sum, metric),
  }))
}

/** The counts of one point with labels beyond the lines added up. */
function gathered(counts: ReadonlyMap<string, Counts>, names: ReadonlySet<string>): ReadonlyMap<string, Counts> {
  const sums = new Map<string, Counts>()
  for (const [name, own] of counts) addTo(createIn(sums, names.has(name) ? name : OTHER), own)
  return sums
}

/** The largest, and the rest as `other`. */
function topOf(sums: ReadonlyMap<string, Counts>, most: number, weight: (counts: Counts) => number): [string, Counts][] {
  const sorted = [...sums].sort((a, b) => weight(b[1]) - weight(a[1]) || (a[0] < b[0] ? -1 : 1))
  if (sorted.length <= most) return sorted
  const top = new Map(sorted.slice(0, most).map(([name, counts]) => [name, [...counts]]))
  for (const [, counts] of sorted.slice(most)) addTo(createIn(top, OTHER), counts)
  return [...top]
}

const QUANTILES = [
  ['p50', 0.5],
  ['p95', 0.95],
  ['p99', 0.99],
] as const

function quantileLines(points: readonly UsagePoint[], times: readonly number[]) {
  const byTime = new Map(points.map(point => [point.start, point]))
  const whole: Counts = []
  for (const { latencies } of points) addTo(whole, latencies)
  const mean = {
    name: 'mean',
    values: times.map(at => valueOf(byTime.get(at)?.counts.get(''), 'latency')),
    total: valueOf(sumsOf(points).get(''), 'latency'),
  }
  const lines = QUANTILES.map(([name, part]) => ({
    name,
    values: times.map(at => quantileOf(byTime.get(at)?.latencies ?? [], part)),
    total: quantileOf(whole, part),
  }))
  return [mean, ...lines]
}

function rowWire(by: By, name: string, counts: Counts) {
  const of = (field: Field) => fieldOf(counts, field)
  // 0 would be wrong for what requests are not counted by
  const hasRequests = OF_REQUESTS.includes(by)
  return {
    name,
    requests: hasRequests ? of('requests') : null,
    errors: hasRequests ? of('errors') : null,
    latency_ms: hasRequests || by === 'tool' ? Math.round(of('latency') * 1_000) / 1_000 : null,
    calls: of('calls'),
    failures: of('failures'),
    input_tokens: of('input'),
    output_tokens: of('output'),
    cached_tokens: of('cached'),
    reasoning_tokens: of('reasoning'),
    cost: of('cost'),
  }
}

const tooManyPoints = (step: Step) =>
  svcError('INVALID_VALUE', `the range has more than ${MOST_POINTS} points`, {
    details: { field: 'from', reason: `at most ${MOST_POINTS} points`, limit: MOST_POINTS },
    hint: step === 'minute' ? 'Choose a shorter range, or step=hour' : 'Choose a shorter range',
  })
