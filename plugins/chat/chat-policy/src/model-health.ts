import { redactText } from '@svc/core'
import type { Json, ModelDone, ModelFailed, ModelHealth, ModelRef, ModelState, Peers, WorkerMetrics } from '@svc/core/contracts'
import { type Breakers, keyOf, plainRef } from './breakers.ts'

/** Models that a worker counts. Callers can invent names: the least recently called is dropped. */
const MODELS = 200
const MAX_MESSAGE = 300
const PLUGIN = 'chat-policy'

/** What one worker has counted of a model. */
interface Counted extends ModelRef {
  readonly calls: number
  readonly failures: number
  /** Sum and number of the times to the first event, and the last of them with the time of its end. */
  readonly first: { readonly sum: number; readonly count: number; readonly last: number; readonly at: number }
  readonly lastError?: NonNullable<ModelState['lastError']>
}

/** What one worker reports. `breakers` has those that are not closed. */
interface Report {
  readonly models: readonly Counted[]
  readonly breakers: readonly (ModelRef & { readonly state: ModelState['breaker']; readonly retryAt: number })[]
}

/** Counts the calls of this worker, and gathers those of all. */
export interface ModelHealthCounts {
  readonly service: ModelHealth
  /** A call has failed before its first event: `done` does not have the message. */
  readonly failed: (call: ModelFailed) => undefined
  readonly done: (done: ModelDone) => void
  /** For a tap of `Peers.hooks.metrics`. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

export function createModelHealth(breakers: Pick<Breakers, 'states' | 'broken'>, peers: Peers | undefined): ModelHealthCounts {
  const counted = new Map<string, Counted>()
  const messages = new Map<string, string>()
  const put = (next: Counted) => {
    const key = keyOf(next)
    // the most recently called models are the last
    counted.delete(key)
    counted.set(key, next)
    if (counted.size > MODELS) counted.delete(counted.keys().next().value!)
  }
  const report = (): Report => ({ models: [...counted.values()], breakers: brokenOf(breakers) })
  const reportJson = () => report() as unknown as Json
  return {
    failed({ selected, message }) {
      // calls whose end is never reported
      if (messages.size >= MODELS) messages.clear()
      messages.set(keyOf(selected), redactText(message).slice(0, MAX_MESSAGE))
      return undefined
    },
    done({ selected, answered, failure, events, firstMs }) {
      if (answered) return
      const key = keyOf(selected)
      const { calls, failures, first, lastError } = counted.get(key) ?? emptyOf(plainRef(selected))
      const at = Date.now()
      const error = failure && {
        kind: failure.kind,
        message: messages.get(key) ?? '',
        at,
        ...(failure.upstreamStatus === undefined ? {} : { upstreamStatus: failure.upstreamStatus }),
      }
      messages.delete(key)
      const isTimed = firstMs > 0 && (events !== undefined || !failure)
      put({
        ...plainRef(selected),
        calls: calls + 1,
        failures: failures + (failure ? 1 : 0),
        first: isTimed ? { sum: first.sum + firstMs, count: first.count + 1, last: firstMs, at } : first,
        ...(error ? { lastError: error } : lastError ? { lastError } : {}),
      })
    },
    own: metrics => ({ ...metrics, [PLUGIN]: reportJson() }),
    inherit(metrics) {
      for (const model of reportIn(metrics)?.models ?? []) put(sumOf(counted.get(keyOf(model)) ?? emptyOf(model), model))
    },
    service: {
      async states(ctx) {
        return statesOf(peers ? await peers.metrics(ctx) : [{ [PLUGIN]: reportJson() }])
      },
    },
  }
}

const emptyOf = ({ provider, model }: ModelRef): Counted => ({
  provider,
  model,
  calls: 0,
  failures: 0,
  first: { sum: 0, count: 0, last: 0, at: 0 },
})

// only this file writes it, in this process or in another worker
const reportIn = (metrics: WorkerMetrics) => metrics[PLUGIN] as unknown as Report | undefined

function brokenOf(breakers: Pick<Breakers, 'states' | 'broken'>): Report['breakers'] {
  const due = new Map(breakers.broken().map(([ref, dueMs]) => [keyOf(ref), dueMs]))
  return breakers.states().flatMap(([ref, state]) => {
    const dueMs = due.get(keyOf(ref))
    return dueMs === undefined ? [] : [{ ...plainRef(ref), state, retryAt: Math.round(Date.now() + Math.max(0, dueMs)) }]
  })
}

function sumOf(a: Counted, b: Counted): Counted {
  const later = a.first.at >= b.first.at ? a.first : b.first
  const first = { ...later, sum: a.first.sum + b.first.sum, count: a.first.count + b.first.count }
  const errors = [a.lastError, b.lastError].filter(error => error !== undefined).toSorted((x, y) => y.at - x.at)
  const { provider, model } = a
  const counts = { provider, model, calls: a.calls + b.calls, failures: a.failures + b.failures, first }
  return errors[0] ? { ...counts, lastError: errors[0] } : counts
}

/** Totals count of all workers, breakers of the running ones only. */
function statesOf(all: readonly WorkerMetrics[]): readonly ModelState[] {
  const sums = new Map<string, Counted>()
  for (const metrics of all)
    for (const model of reportIn(metrics)?.models ?? [])
      sums.set(keyOf(model), sumOf(sums.get(keyOf(model)) ?? emptyOf(model), model))
  const newest = Math.max(...all.map(({ generation = 0 }) => generation))
  const running = all.filter(({ ended, generation = 0 }) => !ended && generation === newest)
  const broken = running.flatMap(metrics => reportIn(metrics)?.breakers ?? [])
  for (const ref of broken) if (!sums.has(keyOf(ref))) sums.set(keyOf(ref), emptyOf(ref))
  return [...sums.values()]
    .map(sum =>
      stateOf(
        sum,
        broken.filter(ref => keyOf(ref) === keyOf(sum))
      )
    )
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

function stateOf({ provider, model, calls, failures, first, lastError }: Counted, broken: Report['breakers']): ModelState {
  const open = broken.filter(({ state }) => state === 'open')
  const breaker = open.length > 0 ? 'open' : broken.length > 0 ? 'half_open' : 'closed'
  return {
    provider,
    model,
    breaker,
    openIn: open.length,
    ...(broken.length > 0 ? { retryAt: Math.min(...broken.map(({ retryAt }) => retryAt)) } : {}),
    calls,
    failures,
    ...(first.count > 0 ? { firstMs: { last: Math.round(first.last), mean: Math.round(first.sum / first.count) } } : {}),
    ...(lastError ? { lastError } : {}),
  }
}
