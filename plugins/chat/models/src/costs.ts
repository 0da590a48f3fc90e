import type { MetricFamily, ModelDone, Sample, Usage } from '@svc/core/contracts'
import type { ModelsConfig, Price } from './settings.ts'

/** What the calls of priced models have cost. */
export interface Costs {
  /** For a tap of `Chat.hooks.modelDone`. */
  readonly count: (done: ModelDone) => void
  read(): MetricFamily[]
}

const MILLION = 1_000_000

/** Counts models that have a price and no others: so the configuration bounds the series. */
export function createCosts({ prices, currency }: Readonly<Pick<ModelsConfig, 'prices' | 'currency'>>): Costs {
  const spent = new Map(Object.keys(prices).map(key => [key, 0]))
  return {
    count({ selected, usage, answered }) {
      const key = `${selected.provider}/${selected.model}`
      const price = Object.hasOwn(prices, key) ? prices[key] : undefined
      if (price && !answered) spent.set(key, spent.get(key)! + costOf(usage, price))
    },
    read() {
      if (spent.size === 0) return []
      const values = [...spent].map(([key, value]): Sample => ({ labels: { ...partsOf(key), currency }, value }))
      return [
        { name: 'svc_model_cost_total', help: 'What models cost, by models.prices.', type: 'counter', aggregator: 'sum', values },
      ]
    },
  }
}

/** `cached` is a part of `input`. */
function costOf({ input, output, cached = 0 }: Usage, price: Price): number {
  const known = Math.min(cached, input)
  return ((input - known) * price.input + known * (price.cached_input ?? price.input) + output * price.output) / MILLION
}

/** Models may have slashes in their names, providers have none. */
export function partsOf(key: string): { readonly provider: string; readonly model: string } {
  const at = key.indexOf('/')
  return { provider: key.slice(0, at), model: key.slice(at + 1) }
}
