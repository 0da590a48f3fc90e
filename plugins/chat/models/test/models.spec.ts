import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { codeOf, type ConfigTree, definePlugin, type PluginRef } from '@svc/core'
import { Chat, ModelCalls, MetricSources, type ModelEvent, type Provider, Providers, type Usage } from '@svc/core/contracts'
import { item, testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const PLUGINS = ['store-memory', 'conversations', 'selection', 'modes', 'chat', 'model-calls', 'models'].map(pluginFolder)

/** A provider whose answer names the model that was asked. */
const provider = (usage: Usage): Provider => ({
  features: { tool_calling: true, streaming: true, vision: false },
  models: async () => ({ models: [{ id: 'm' }, { id: 'vendor/large-1.5' }, { id: 'free' }], open: false }),
  countTokens: async () => 1,
  async *chat({ model }) {
    yield { type: 'text', text: model }
    yield { type: 'usage', usage }
    yield { type: 'finish', reason: 'stop' }
  },
  probe: async () => undefined,
})

/** A host with chat and a provider `p`, and what it has logged. */
async function startModelsHost(
  models: ConfigTree,
  { give = [], usage = { input: 1_000_000, output: 100_000 } }: ModelsHostOptions = {}
) {
  const home = await mkdtemp(join(tmpdir(), 'svc-models-'))
  const profiles_file = join(home, 'profiles.yaml')
  await writeFile(profiles_file, 'profiles: { default: {} }\n')
  const logged: string[] = []
  const destination = new Writable({ write: (chunk, _encoding, done) => done(void logged.push(String(chunk))) })
  const host = await testHost(PLUGINS, {
    give: [...give, item(Providers, 'p', provider(usage))],
    config: { selection: { profiles_file }, models },
    log: { destination },
  })
  const chat = host.service(Chat)
  return {
    logged,
    reply: (model: string) => chat.reply({ message: 'hi', model }, testContext()),
    async costs() {
      const families = (await host.slot(MetricSources).get('models')?.read(testContext())) ?? []
      return families.flatMap(({ name, values }) =>
        values.map(({ labels, value }) => `${name}{${Object.values(labels).join(' ')}} ${value.toFixed(3)}`)
      )
    },
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(home, { recursive: true })
    },
  }
}
interface ModelsHostOptions {
  readonly give?: readonly PluginRef[]
  readonly usage?: Usage
}

describe('an alias of a model', () => {
  it('stands where a model may, and the reply names the model that answered', async () => {
    await using modelsHost = await startModelsHost({ aliases: { large: { provider: 'p', model: 'vendor/large-1.5' } } })
    expect(await modelsHost.reply('large')).to.include({ response: 'vendor/large-1.5', provider: 'p', model: 'vendor/large-1.5' })
  })

  it('is warned of when it leads to a provider that is not there, and then its model is not found', async () => {
    await using modelsHost = await startModelsHost({ aliases: { lost: { provider: 'q', model: 'm' } } })
    expect(modelsHost.logged.join('')).to.contain('models.aliases.lost names an unknown provider')
    const code = await modelsHost.reply('lost').then(() => 'none', codeOf)
    expect(code).to.be.oneOf(['MODEL_NOT_FOUND', 'PROVIDER_NOT_FOUND'])
  })

  it('is warned of when it leads to another alias', async () => {
    const aliases = { one: { provider: 'p', model: 'two' }, two: { provider: 'p', model: 'm' } }
    await using modelsHost = await startModelsHost({ aliases })
    expect(modelsHost.logged.join('')).to.contain('models.aliases.one names another alias')
  })

  it('must name both a provider and a model', async () => {
    const message = await startModelsHost({ aliases: { half: { provider: 'p' } } }).then(
      () => '',
      (error: Error) => error.message
    )
    expect(message).to.contain('models.aliases.half.model')
  })
})

describe('the cost of models', () => {
  const prices = { 'p/m': { input: 2, output: 10 }, 'p/vendor/large-1.5': { input: 4, output: 20, cached_input: 1 } }

  it('is counted by what their tokens cost, in the currency that is named', async () => {
    await using modelsHost = await startModelsHost({ prices, currency: 'EUR' })
    await modelsHost.reply('m')
    expect(await modelsHost.costs()).to.deep.equal([
      'svc_model_cost_total{p m EUR} 3.000',
      'svc_model_cost_total{p vendor/large-1.5 EUR} 0.000',
    ])
    await modelsHost.reply('m')
    expect((await modelsHost.costs())[0]).to.equal('svc_model_cost_total{p m EUR} 6.000')
  })

  it('counts input that was written to the cache at its own price, else as any input', async () => {
    const prices = { 'p/m': { input: 2, output: 10 }, 'p/free': { input: 4, output: 20, cached_input: 1, cache_write: 5 } }
    const usage = { input: 1_000_000, output: 0, cached: 500_000, cacheWrite: 250_000 }
    await using modelsHost = await startModelsHost({ prices }, { usage })
    for (const model of ['m', 'free']) await modelsHost.reply(model)
    expect(await modelsHost.costs()).to.deep.equal([
      'svc_model_cost_total{p m USD} 2.000',
      'svc_model_cost_total{p free USD} 2.750',
    ])
  })

  it('counts cached input at its own price, else as any input', async () => {
    await using modelsHost = await startModelsHost({ prices }, { usage: { input: 1_000_000, output: 0, cached: 750_000 } })
    for (const model of ['m', 'vendor/large-1.5']) await modelsHost.reply(model)
    expect(await modelsHost.costs()).to.deep.equal([
      'svc_model_cost_total{p m USD} 2.000',
      'svc_model_cost_total{p vendor/large-1.5 USD} 1.750',
    ])
  })

  it('leaves models without a price out, and answers that did not come from the model', async () => {
    const ready: ModelEvent[] = [
      { type: 'usage', usage: { input: 1_000_000, output: 0 } },
      { type: 'finish', reason: 'stop' },
    ]
    const cache: PluginRef = {
      name: 'cache',
      use: definePlugin({
        setup: scope => void scope.tap(ModelCalls.hooks.modelCall, ({ round }) => (round === 1 ? { events: ready } : undefined)),
      }),
    }
    await using modelsHost = await startModelsHost({ prices }, { give: [cache] })
    await modelsHost.reply('m')
    expect((await modelsHost.costs())[0]).to.equal('svc_model_cost_total{p m USD} 0.000')
    await using bare = await startModelsHost({})
    await bare.reply('free')
    expect(await bare.costs()).to.deep.equal([])
  })

  it('is asked for by provider and model, and by numbers that are prices', async () => {
    const wrong = (models: ConfigTree) =>
      startModelsHost(models).then(
        () => '',
        (error: Error) => error.message
      )
    expect(await wrong({ prices: { m: { input: 1, output: 1 } } })).to.contain('models.prices')
    expect(await wrong({ prices: { 'p/m': { input: -1, output: 1 } } })).to.contain('models.prices.p/m.input must be >= 0')
  })
})
