import type { MetricFamily, ModelDone } from '@svc/core/contracts'
import { counter } from './families.ts'

/** So many models are told apart: where a provider takes any name, callers invent them. */
const MODELS = 200

interface Series {
  readonly provider: string
  readonly model: string
  readonly outcomes: Map<string, number>
  seconds: number
  input: number
  output: number
}

/** Calls, tokens and seconds by provider and model. */
export interface ModelCounts {
  count(done: ModelDone): void
  read(): MetricFamily[]
}

export function createModelCounts(): ModelCounts {
  const all = new Map<string, Series>()
  const seriesOf = (provider: string, model: string) => {
    const known = all.get(`${provider} ${model}`)
    if (known) return known
    const told = all.size < MODELS ? model : 'other'
    const key = `${provider} ${told}`
    const one = all.get(key) ?? { provider, model: told, outcomes: new Map(), seconds: 0, input: 0, output: 0 }
    all.set(key, one)
    return one
  }
  return {
    count({ selected, usage, durationMs, failure }) {
      const one = seriesOf(selected.provider, selected.model)
      const outcome = failure?.kind ?? 'ok'
      one.outcomes.set(outcome, (one.outcomes.get(outcome) ?? 0) + 1)
      one.seconds += durationMs / 1000
      one.input += usage.input
      one.output += usage.output
    },
    read: () => familiesOf([...all.values()]),
  }
}

function familiesOf(series: readonly Series[]): MetricFamily[] {
  const labels = ({ provider, model }: Series) => ({ provider, model })
  const calls = series.flatMap(one =>
    [...one.outcomes].map(([outcome, value]) => ({ labels: { ...labels(one), outcome }, value }))
  )
  const tokens = series.flatMap(one =>
    (['input', 'output'] as const).map(kind => ({ labels: { ...labels(one), kind }, value: one[kind] }))
  )
  return [
    counter('svc_model_calls_total', 'Calls of models; outcome is ok or the kind of failure.', calls),
    counter('svc_tokens_total', 'Tokens that models took and gave.', tokens),
    counter(
      'svc_model_seconds_total',
      'Seconds that calls of models took.',
      series.map(one => ({ labels: labels(one), value: one.seconds }))
    ),
  ]
}
