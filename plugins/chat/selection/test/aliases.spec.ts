import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { svcError } from '@svc/core'
import { ModelAliases, type ModelInfo, type Provider, Providers, Selection } from '@svc/core/contracts'
import { item, testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const provider = (models: readonly ModelInfo[], more: Partial<Provider> = {}): Provider => ({
  features: { tool_calling: true, streaming: true, vision: false },
  models: async () => ({ models, open: false }),
  countTokens: async () => 1,
  async *chat() {
    yield { type: 'finish', reason: 'stop' }
  },
  probe: async () => undefined,
  ...more,
})
const down = provider([], {
  models: () => Promise.reject(svcError('MODEL_FAILED', 'down', { details: { kind: 'network', retryable: true } })),
})

const PROFILES = `default: plain
profiles:
  plain: {}
  quick: { model: fast, fallback: [{ provider: b, model: big }, { provider: b, model: fast }, { provider: a, model: a-1 }] }
  both: { provider: b, model: fast }
  away: { provider: a, model: a-1, fallback: [{ provider: nobody, model: lost }, { provider: broken, model: torn }, { provider: b, model: fast }] }
  silent: { provider: d, fallback: [{ provider: nobody, model: x }, { provider: b, model: nothing }, { provider: b, model: big }, { provider: a, model: a-1 }] }
  gone: { provider: nobody, fallback: [{ provider: nobody, model: x }] }
`

async function startHost(profile = 'plain') {
  const home = await mkdtemp(join(tmpdir(), 'svc-selection-'))
  const file = join(home, 'profiles.yaml')
  await writeFile(file, PROFILES)
  const aliases = {
    fast: ['b', 'b-1'],
    big: ['b', 'b-2'],
    'a-2': ['b', 'b-1'],
    lost: ['nobody', 'x'],
    wrong: ['b', 'nothing'],
    away: ['d', 'd-9'],
    torn: ['broken', 'x'],
  }
  const host = await testHost(['store-memory', 'selection', 'modes'].map(pluginFolder), {
    give: [
      item(Providers, 'a', provider([{ id: 'a-1', context: 7 }, { id: 'a-2' }])),
      item(Providers, 'b', provider([{ id: 'b-1', context: 9 }, { id: 'b-2' }, { id: 'big' }])),
      item(Providers, 'd', down),
      item(Providers, 'broken', provider([], { models: () => Promise.reject(new Error('broken')) })),
      ...Object.entries(aliases).map(([name, [of = '', model = '']]) => item(ModelAliases, name, { provider: of, model })),
    ],
    config: { selection: { profiles_file: file, profile } },
  })
  const selection = host.service(Selection)
  const select = async (asked: { provider?: string; model?: string } = {}) => {
    try {
      const { provider: name, model } = await selection.select(asked, testContext())
      return `${name}/${model}`
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  const close = async () => {
    await host.close()
    await rm(home, { recursive: true })
  }
  return { selection, select, [Symbol.asyncDispose]: close }
}

describe('an alias of a model', () => {
  it('stands for its provider and model, asked alone or with its own provider', async () => {
    await using host = await startHost()
    expect(await host.select({ model: 'fast' })).to.equal('b/b-1')
    expect(await host.select({ provider: 'b', model: 'fast' })).to.equal('b/b-1')
  })

  it('is no model of another provider', async () => {
    await using host = await startHost()
    expect(await host.select({ provider: 'a', model: 'fast' })).to.equal('MODEL_NOT_FOUND')
  })

  it('gives way to a real model of that name, of the provider that is asked or the current one', async () => {
    await using host = await startHost()
    expect(await host.select({ model: 'a-2' })).to.equal('a/a-2')
    expect(await host.select({ provider: 'a', model: 'a-2' })).to.equal('a/a-2')
    expect(await host.select({ provider: 'b', model: 'big' })).to.equal('b/big')
    expect(await host.select({ model: 'big' })).to.equal('b/b-2')
  })

  it('that leads nowhere is reported as what it leads to', async () => {
    await using host = await startHost()
    expect(await host.select({ model: 'lost' })).to.equal('PROVIDER_NOT_FOUND')
    expect(await host.select({ model: 'wrong' })).to.equal('MODEL_NOT_FOUND')
  })

  it('may stand in a profile, and the effective configuration tells the real names', async () => {
    await using host = await startHost('quick')
    expect(await host.select()).to.equal('b/b-1')
    expect(await host.selection.effective(testContext())).to.include({ provider: 'b', model: 'b-1' })
    const { fallback } = await host.selection.select({}, testContext())
    expect(fallback.map(each => `${each.provider}/${each.model}`)).to.deep.equal(['b/big', 'b/b-1', 'a/a-1'])
    await host.selection.switchProfile('both', testContext())
    expect(await host.select()).to.equal('b/b-1')
  })

  it('may be switched to: what is kept and shown is what it stands for', async () => {
    await using host = await startHost()
    expect(await host.selection.switchModel('b', 'fast', testContext())).to.deep.include({
      model: 'b-1',
      override: { provider: 'b', model: 'b-1' },
    })
  })
})

describe('what a provider tells of a model', () => {
  it('comes with the selection, and stays out of the effective configuration', async () => {
    await using host = await startHost()
    for (const [asked, info] of [
      [{}, { id: 'a-1', context: 7 }],
      [{ provider: 'b' }, { id: 'b-1', context: 9 }],
      [{ model: 'b-1' }, { id: 'b-1', context: 9 }],
      [
        { provider: 'b', model: 'fast' },
        { id: 'b-1', context: 9 },
      ],
    ] as const)
      expect((await host.selection.select(asked, testContext())).info).to.deep.equal(info)
    expect(await host.selection.effective(testContext())).to.not.have.property('info')
  })

  it('is missing while it cannot tell: then any model of it may be asked for by name', async () => {
    await using host = await startHost()
    expect(await host.selection.select({ provider: 'd', model: 'd-1' }, testContext())).to.not.have.property('info')
    expect(await host.select({ model: 'away' })).to.equal('d/d-9')
    expect(await host.select({ provider: 'd' })).to.equal('MODEL_FAILED')
  })
})

describe('the fallback of a profile', () => {
  it('may name what is not configured or cannot be listed: the turn begins nevertheless', async () => {
    await using host = await startHost('away')
    const { fallback } = await host.selection.select({}, testContext())
    expect(fallback.map(({ provider: name, model }) => `${name}/${model}`)).to.deep.equal(['nobody/lost', 'broken/x', 'b/b-1'])
  })

  it('answers where the profile names a provider that cannot tell its first model', async () => {
    await using host = await startHost('silent')
    const { provider: name, model, source, fallback } = await host.selection.select({}, testContext())
    expect([name, model, source.model, fallback.length]).to.deep.equal(['b', 'big', 'profile', 4])
  })

  it('does not stand in for a provider that the request names, nor for a profile without one', async () => {
    await using silent = await startHost('silent')
    expect(await silent.select({ provider: 'd' })).to.equal('MODEL_FAILED')
    await using gone = await startHost('gone')
    expect(await gone.select()).to.equal('PROVIDER_NOT_FOUND')
  })
})
