import { schema, type Log, type SlotView } from '@svc/core'
import type { MetricFamily, ModelDone, ModelRef, Prices, Provider, Sample, Usage } from '@svc/core/contracts'

/** The price of a model per million tokens. */
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
      description: 'Aliases of models, valid wherever a model name is',
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
      description: 'Prices per million tokens by "<provider>/<model>", for the metric svc_model_cost_total',
      propertyNames: { pattern: '^[^/]+/.+$' },
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['input', 'output'],
        properties: {
          input: amount('Price of a million input tokens'),
          output: amount('Price of a million output tokens'),
          cached_input: amount('Price of a million cached input tokens; default: the price of input'),
          cache_write: amount(
            'Price of a million input tokens that the provider writes to its cache; default: the price of input'
          ),
        },
      },
    },
    currency: {
      type: 'string',
      pattern: '^[A-Za-z]{1,16}$',
      default: 'USD',
      description: 'Currency of the prices, as label of the metric',
    },
  },
})

/** Counts the costs of calls of models with a price. */
export interface Costs {
  /** For a tap of `ModelCalls.hooks.modelDone`. */
  readonly count: (done: ModelDone) => void
  read(): MetricFamily[]
}

const MILLION = 1_000_000

/** Counts only models with a price, so that the configuration limits the number of series. */
export function createCosts({ prices, currency }: Readonly<Pick<ModelsConfig, 'prices' | 'currency'>>): Costs {
  const spent = new Map(Object.keys(prices).map(key => [key, 0]))
  const priceOf = createPriceLookup(prices)
  return {
    count({ selected, usage, answered }) {
      const price = answered ? undefined : priceOf(selected)
      const key = keyOf(selected)
      if (price) spent.set(key, spent.get(key)! + costOf(usage, price))
    },
    read() {
      if (spent.size === 0) return []
      const values = [...spent].map(([key, value]): Sample => ({ labels: { ...partsOf(key), currency }, value }))
      return [
        {
          name: 'svc_model_cost_total',
          help: 'Costs of model calls, by models.prices.',
          type: 'counter',
          aggregator: 'sum',
          values,
        },
      ]
    },
  }
}

const keyOf = ({ provider, model }: ModelRef) => `${provider}/${model}`

const createPriceLookup = (prices: ModelsConfig['prices']) => (model: ModelRef) =>
  Object.hasOwn(prices, keyOf(model)) ? prices[keyOf(model)] : undefined

/** The service `Prices`. */
export function createPrices({ prices, currency }: Readonly<Pick<ModelsConfig, 'prices' | 'currency'>>): Prices {
  const priceOf = createPriceLookup(prices)
  return {
    async price(model) {
      const price = priceOf(model)
      if (!price) return undefined
      const { input, output, cached_input: cachedInput, cache_write: cacheWrite } = price
      return {
        input,
        output,
        ...(cachedInput === undefined ? {} : { cachedInput }),
        ...(cacheWrite === undefined ? {} : { cacheWrite }),
      }
    },
    async cost(model, usage) {
      const price = priceOf(model)
      return price && costOf(usage, price)
    },
    currency: async () => currency,
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

/** Names of models can contain slashes, names of providers cannot. */
function partsOf(key: string): { readonly provider: string; readonly model: string } {
  const at = key.indexOf('/')
  return { provider: key.slice(0, at), model: key.slice(at + 1) }
}

/** Providers come and go, so an unknown provider is only a warning. */
export function warnOfNames({ aliases, prices }: Readonly<ModelsConfig>, providers: SlotView<Provider>, log: Log): undefined {
  const strange = (provider: string) => !providers.has(provider)
  for (const [alias, { provider, model }] of Object.entries(aliases)) {
    if (strange(provider))
      log.warn({ alias, provider, known: providers.names() }, `models.aliases.${alias} names an unknown provider`)
    else if (Object.hasOwn(aliases, model))
      log.warn({ alias, model }, `models.aliases.${alias} names another alias, which is used as the name of a model`)
  }
  const unpriced = Object.keys(prices).filter(key => strange(partsOf(key).provider))
  if (unpriced.length > 0) log.warn({ unpriced, known: providers.names() }, 'models.prices names unknown providers')
}
