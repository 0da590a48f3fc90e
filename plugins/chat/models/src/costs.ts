import type { Log, SlotView } from '@svc/core'
import type { MetricFamily, ModelDone, Provider, Sample, Usage } from '@svc/core/contracts'
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
function partsOf(key: string): { readonly provider: string; readonly model: string } {
  const at = key.indexOf('/')
  return { provider: key.slice(0, at), model: key.slice(at + 1) }
}

/** Providers come and go, so a name that leads nowhere is worth a warning, no more. */
export function warnOfNames({ aliases, prices }: Readonly<ModelsConfig>, providers: SlotView<Provider>, log: Log): undefined {
  const strange = (provider: string) => !providers.has(provider)
  for (const [alias, { provider, model }] of Object.entries(aliases)) {
    if (strange(provider)) log.warn({ alias, provider, known: providers.names() }, `models.aliases.${alias}: no such provider`)
    else if (Object.hasOwn(aliases, model))
      log.warn({ alias, model }, `models.aliases.${alias} leads to an alias: it is taken as a model's name`)
  }
  const unpriced = Object.keys(prices).filter(key => strange(partsOf(key).provider))
  if (unpriced.length > 0) log.warn({ unpriced, known: providers.names() }, 'models.prices: no such provider')
}
