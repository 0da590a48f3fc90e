import { schema, type Log, type SlotView } from '@svc/core'
import type { MetricFamily, ModelDone, Provider, Sample, Usage } from '@svc/core/contracts'

/** What a model costs, per million tokens. */
interface Price {
  input: number
  output: number
  cached_input?: number
  cache_write?: number
}

/** The section `models`. */
export interface ModelsConfig {
  aliases: Record<string, { provider: string; model: string }>
  prices: Record<string, Price>
  currency: string
}

const name = (description: string) => ({ type: 'string', minLength: 1, description })
const amount = (description: string) => ({ type: 'number', minimum: 0, description })

export const MODELS_CONFIG = schema<ModelsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    aliases: {
      type: 'object',
      default: {},
      description: 'Names of your own for models; one may stand wherever a model may',
      propertyNames: { minLength: 1, maxLength: 200 },
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['provider', 'model'],
        properties: { provider: name('Name of a provider'), model: name('One of its models') },
      },
    },
    prices: {
      type: 'object',
      default: {},
      description: 'What models cost per million tokens, as "<provider>/<model>": svc_model_cost_total counts it',
      propertyNames: { pattern: '^[^/]+/.+$' },
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['input', 'output'],
        properties: {
          input: amount('A million tokens of input'),
          output: amount('A million tokens of output'),
          cached_input: amount('A million tokens of input that the provider had cached; default: as input'),
          cache_write: amount('A million tokens of input that the provider wrote to its cache; default: as input'),
        },
      },
    },
    currency: {
      type: 'string',
      pattern: '^[A-Za-z]{1,16}$',
      default: 'USD',
      description: 'The currency of the prices, as the label of the metric tells it',
    },
  },
})

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

/** `cached` and `cacheWrite` are parts of `input`. */
function costOf({ input, output, cached = 0, cacheWrite = 0 }: Usage, price: Price): number {
  const known = Math.min(cached, input)
  const written = Math.min(cacheWrite, input - known)
  const inputCost =
    (input - known - written) * price.input +
    known * (price.cached_input ?? price.input) +
    written * (price.cache_write ?? price.input)
  return (inputCost + output * price.output) / MILLION
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
