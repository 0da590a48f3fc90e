import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfigTree, formatError, type PluginRef } from '@svc/core'
import { type Provider, Providers, Selection } from '@svc/core/contracts'
import { item, testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const BASE = ['store-memory', 'selection', 'modes'].map(pluginFolder)

const provider = (models: string[], open = false): PluginRef => {
  const found: Provider = {
    features: { tool_calling: true, streaming: true, vision: false },
    models: async () => ({ models: models.map(id => ({ id })), open }),
    countTokens: async () => 1,
    async *chat() {
      yield { type: 'finish', reason: 'stop' }
    },
    probe: async () => undefined,
  }
  return item(Providers, models[0]!.split('-')[0]!, found)
}
const ABC = [provider(['a-1', 'a-2', 'both-1']), provider(['b-1', 'both-1']), provider(['c-1'], true)]

/** Does work that takes this folder for the svc home. */
async function inHome<T>(home: string, work: () => Promise<T>): Promise<T> {
  const { SVC_HOME } = process.env
  process.env.SVC_HOME = home
  try {
    return await work()
  } finally {
    if (SVC_HOME === undefined) delete process.env.SVC_HOME
    else process.env.SVC_HOME = SVC_HOME
  }
}

async function startHost(profiles?: string, { give = ABC, config = {} }: { give?: PluginRef[]; config?: ConfigTree } = {}) {
  const home = await mkdtemp(join(tmpdir(), 'svc-selection-'))
  const file = join(home, 'profiles.yaml')
  if (profiles !== undefined) await writeFile(file, profiles)
  try {
    const host = await inHome(home, () => testHost(BASE, { give, config: { selection: config } }))
    const selection = host.service(Selection)
    const close = async () => {
      await host.close()
      await rm(home, { recursive: true })
    }
    return { host, selection, file, [Symbol.asyncDispose]: close }
  } catch (error) {
    await rm(home, { recursive: true })
    throw error
  }
}

async function thrown(
  work: Promise<unknown>
): Promise<{ code: string; where?: string; hint?: string; message: string; details: Record<string, unknown> }> {
  try {
    await work
  } catch (error) {
    return error as Awaited<ReturnType<typeof thrown>>
  }
  throw new Error('nothing was thrown')
}

const PROFILES = `default: plain
profiles:
  plain: { description: as it comes }
  beta: { provider: b, model: b-1, temperature: 0.2, max_tokens: 7, mode: plan }
  half: { provider: b }
`

describe('which model answers', () => {
  const cases: [string, { provider?: string; model?: string }, string, string][] = [
    ['nothing asked: the first provider and its first model', {}, 'a', 'a-1'],
    ['a provider alone: the first of its models', { provider: 'b' }, 'b', 'b-1'],
    ['a model alone that the current provider lists', { model: 'both-1' }, 'a', 'both-1'],
    ['a model alone that one other provider lists', { model: 'b-1' }, 'b', 'b-1'],
    ['both', { provider: 'a', model: 'a-2' }, 'a', 'a-2'],
    ['any model of a provider whose list is open', { provider: 'c', model: 'whatever' }, 'c', 'whatever'],
  ]
  for (const [title, asked, wantProvider, wantModel] of cases) {
    it(title, async () => {
      await using host = await startHost(PROFILES)
      expect(await host.selection.select(asked, testContext())).to.include({ provider: wantProvider, model: wantModel })
    })
  }

  it('refuses an unknown provider, and a model that no provider or more than one other has', async () => {
    await using host = await startHost(PROFILES, {
      give: [...ABC.slice(2), provider(['x-1', 'both-1']), provider(['y-1', 'both-1'])],
    })
    const missing = await thrown(host.selection.select({ provider: 'nope' }, testContext()))
    expect([missing.code, missing.details.available]).to.deep.equal(['PROVIDER_NOT_FOUND', ['c', 'x', 'y']])
    expect((await thrown(host.selection.select({ provider: 'x', model: 'nope' }, testContext()))).code).to.equal(
      'MODEL_NOT_FOUND'
    )
    expect((await thrown(host.selection.select({ model: 'both-1' }, testContext()))).code).to.equal('MODEL_NOT_FOUND')
  })

  it('is the same for equal turns of a moment, and another at once after a switch', async () => {
    await using one = await startHost(PROFILES)
    const select = (asked = {}) => one.selection.select(asked, testContext())
    await select()
    const [first, again, other] = [await select(), await select(), await select({ model: 'both-1' })]
    expect([again, other.model]).to.deep.equal([first, 'both-1'])
    for (const model of ['undefined', 'null']) expect((await thrown(select({ model }))).code).to.equal('MODEL_NOT_FOUND')
    await one.selection.switchMode('plan', testContext())
    expect([(await select()).mode, (await select({ mode: 'build' })).mode]).to.deep.equal(['plan', 'build'])
    await one.selection.switchModel('c', 'c-1', testContext())
    expect((await select()).model).to.equal('c-1')
  })

  it('goes by request, then override, then profile', async () => {
    await using host = await startHost(PROFILES, { config: { profile: 'beta' } })
    const who = async (asked = {}) => {
      const { provider: name, model, source } = await host.selection.select(asked, testContext())
      return [name, model, source.model]
    }
    expect(await who()).to.deep.equal(['b', 'b-1', 'profile'])
    await host.selection.switchModel('c', 'c-1', testContext())
    expect(await who()).to.deep.equal(['c', 'c-1', 'override'])
    expect(await who({ provider: 'a', model: 'a-2' })).to.deep.equal(['a', 'a-2', 'request'])
  })

  it('takes a profile and a mode for one turn: the profile wins over the override, and nothing is switched', async () => {
    await using host = await startHost(PROFILES)
    await host.selection.switchModel('c', 'c-1', testContext())
    const before = await host.selection.effective(testContext())
    const who = async (asked: object) => {
      const { provider: name, profile, mode } = await host.selection.select(asked, testContext())
      return [name, profile.name, mode]
    }
    expect(await who({ profile: 'beta' })).to.deep.equal(['b', 'beta', 'plan'])
    expect(await who({ profile: 'beta', mode: 'review', provider: 'a' })).to.deep.equal(['a', 'beta', 'review'])
    expect(await who({ mode: 'explore' })).to.deep.equal(['c', 'plain', 'explore'])
    expect(await host.selection.effective(testContext())).to.deep.equal(before)
  })

  it('refuses a profile and a mode that are not there, with those that are', async () => {
    await using host = await startHost(PROFILES)
    const profile = await thrown(host.selection.select({ profile: 'nope' }, testContext()))
    expect(profile).to.deep.include({ code: 'INVALID_VALUE' }).and.have.nested.property('details.field', 'profile')
    expect(profile.details.allowed).to.deep.equal(['plain', 'beta', 'half'])
    const mode = await thrown(host.selection.select({ mode: 'nope' }, testContext()))
    expect([mode.code, mode.details.field]).to.deep.equal(['INVALID_VALUE', 'mode'])
  })
})

describe('switches', () => {
  it('clear the override with the profile, and leave the profile with the override', async () => {
    await using host = await startHost(PROFILES)
    expect(await host.selection.switchModel('b', 'b-1', testContext())).to.deep.include({
      profile: 'plain',
      override: { provider: 'b', model: 'b-1' },
    })
    expect(await host.selection.switchProfile('half', testContext())).to.deep.include({
      profile: 'half',
      override: null,
      provider: 'b',
    })
  })

  it('keep a switched mode over a switch of the profile', async () => {
    await using host = await startHost(PROFILES)
    expect((await host.selection.effective(testContext())).mode).to.equal('build')
    expect((await host.selection.switchProfile('beta', testContext())).mode).to.equal('plan')
    expect((await host.selection.switchMode('review', testContext())).mode).to.equal('review')
    expect((await host.selection.switchProfile('plain', testContext())).mode).to.equal('review')
  })

  it('change nothing when they are refused', async () => {
    await using host = await startHost(PROFILES)
    const before = await host.selection.effective(testContext())
    const refused = [
      host.selection.switchProfile('nope', testContext()),
      host.selection.switchMode('nope', testContext()),
      host.selection.switchModel('nope', 'x', testContext()),
      host.selection.switchModel('a', 'nope', testContext()),
    ]
    const codes = await Promise.all(refused.map(async work => (await thrown(work)).code))
    expect(codes).to.deep.equal(['INVALID_VALUE', 'INVALID_VALUE', 'PROVIDER_NOT_FOUND', 'MODEL_NOT_FOUND'])
    expect(await host.selection.effective(testContext())).to.deep.equal(before)
  })

  it('are made at once by many without losing any', async () => {
    await using host = await startHost(PROFILES)
    await Promise.all([
      host.selection.switchMode('explore', testContext()),
      host.selection.switchModel('b', 'b-1', testContext()),
      host.selection.switchMode('explore', testContext()),
    ])
    expect(await host.selection.effective(testContext())).to.deep.include({
      mode: 'explore',
      override: { provider: 'b', model: 'b-1' },
    })
  })
})

describe('profiles.yaml', () => {
  it('is written with a commented default at the first run', async () => {
    await using host = await startHost()
    expect(await readFile(host.file, 'utf8')).to.match(/^# Profiles of svc/)
    expect(await host.selection.profiles(testContext())).to.deep.include({ active: 'default', default: 'default' })
  })

  it('is not written where selection.profiles_file names another that is not there: the start stops with the hint', async () => {
    const file = join(tmpdir(), 'svc-no-such-folder', 'mine.yaml')
    const error = await thrown(startHost(undefined, { config: { profiles_file: file } }))
    expect(formatError(error)).to.match(/^PROFILES_MISSING[^]*mine\.yaml[^]*remove selection\.profiles_file/)
    expect(existsSync(file)).to.equal(false)
  })

  it('means the same read by the parser as untouched', async () => {
    await using untouched = await startHost()
    await using touched = await startHost(`${await readFile(untouched.file, 'utf8')}\n`)
    expect(await touched.selection.profiles(testContext())).to.deep.equal(await untouched.selection.profiles(testContext()))
  })

  it('translates its keys', async () => {
    await using host = await startHost(PROFILES)
    const { profiles } = await host.selection.profiles(testContext())
    expect(profiles[1]).to.deep.equal({ name: 'beta', provider: 'b', model: 'b-1', temperature: 0.2, maxTokens: 7, mode: 'plan' })
  })

  const broken: [string, string, RegExp, RegExp][] = [
    ['an unknown key', 'profiles:\n  default:\n    temprature: 1\n', /profiles\.yaml:3/, /did you mean "temperature"/],
    ['a value out of range', 'profiles:\n  default:\n    temperature: 3\n', /profiles\.yaml:3/, /Fix/],
    ['a default that is not there', 'default: nope\nprofiles:\n  default: {}\n', /profiles\.yaml:1/, /one of: default/],
    ['broken YAML', 'profiles:\n  default: {a\n', /profiles\.yaml:\d/, /Fix the file/],
  ]
  for (const [title, text, where, hint] of broken) {
    it(`stops the start with line and hint: ${title}`, async () => {
      const page = formatError(await thrown(startHost(text)))
      expect(page).to.match(where)
      expect(page).to.match(hint)
    })
  }

  it('stops the start for a mode that does not exist', async () => {
    expect((await thrown(startHost('profiles:\n  default: { mode: sing }\n'))).message).to.contain('sing')
    expect((await thrown(startHost(PROFILES, { config: { profile: 'nope' } }))).message).to.contain('nope')
  })
})
