import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, definePlugin, type JsonSchema, systemContext } from '@svc/core'
import { SettingDefinitions, Settings, Store } from '@svc/core/contracts'
import { item, KIT_SETTINGS, settingsKit, type SettingsSubject, testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const PLUGIN = { name: '@svc/plugin-settings', use: new URL('..', import.meta.url) }
const ctx = systemContext(new AbortController().signal, 'test')

const openStore = (name: string, config = {}) =>
  testHost([{ name: `@svc/plugin-${name}`, use: pluginFolder(name) }], { config, strict: false })
const given = (store: Store) => ({ name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) })

async function openTwo(first: Store, second: Store, close: () => Promise<unknown>): Promise<SettingsSubject> {
  const open = (store: Store) => testHost([PLUGIN], { give: [given(store), item(SettingDefinitions, 'kit', KIT_SETTINGS)] })
  const [one, two] = [await open(first), await open(second)]
  return {
    settings: one.service(Settings),
    other: two.service(Settings),
    async close() {
      await Promise.all([one.close(), two.close()])
      await close()
    },
  }
}

describe('settings in a store', () => {
  describe('in memory', () => {
    const open = async () => {
      const host = await openStore('store-memory')
      return openTwo(host.service(Store), host.service(Store), () => host.close())
    }
    for (const testCase of settingsKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a file', () => {
    const open = async () => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-settings-'))
      const config = { store: { path: join(folder, 'svc.db') } }
      const [first, second] = [await openStore('store-sqlite', config), await openStore('store-sqlite', config)]
      return openTwo(first.service(Store), second.service(Store), async () => {
        await Promise.all([first.close(), second.close()])
        await rm(folder, { recursive: true, force: true })
      })
    }
    for (const testCase of settingsKit(open)) it(testCase.title, testCase.run)
  })
})

/** A plugin with settings of this schema, and the service as it sees it. */
function user(plugin: string, name: string, schema: JsonSchema) {
  let settings: Settings | undefined
  const use = definePlugin({
    requires: { settings: Settings },
    setup(scope, services) {
      ;({ settings } = services)
      scope.add(SettingDefinitions, name, { description: 'Settings', schema })
    },
  })
  return { entry: { name: plugin, use }, of: () => settings! }
}

const ANY: JsonSchema = { type: 'object', properties: { at: {} } }
const failed = (work: Promise<unknown>) => work.then(() => 'done', codeOf)

describe('the settings of a plugin', () => {
  it('are not read or changed by another plugin', async () => {
    await using memory = await openStore('store-memory')
    const [one, two] = [user('svc-one', 'one', ANY), user('svc-two', 'two', ANY)]
    await using _host = await testHost([PLUGIN, one.entry, two.entry], { give: [given(memory.service(Store))] })
    await one.of().change('one', { team: 'ops' }, { at: 1 }, undefined, ctx)
    for (const name of ['one', 'gone', '__proto__']) {
      expect(await failed(two.of().effective(name, [], ctx)), name).to.equal('NOT_PERMITTED')
      expect(await failed(two.of().read(name, { team: 'ops' }, ctx))).to.equal('NOT_PERMITTED')
      expect(await failed(two.of().change(name, { team: 'ops' }, {}, undefined, ctx))).to.equal('NOT_PERMITTED')
      expect(await failed(Array.fromAsync(two.of().changes(name, ctx)))).to.equal('NOT_PERMITTED')
    }
  })

  it('do not pass to a plugin that takes their name later', async () => {
    await using memory = await openStore('store-memory')
    for (const [plugin, expected] of [
      ['svc-one', {}],
      ['svc-thief', {}],
      ['svc-one', { at: 'svc-one' }],
    ] as const) {
      const one = user(plugin, 'one', ANY)
      await using _host = await testHost([PLUGIN, one.entry], { give: [given(memory.service(Store))] })
      expect((await one.of().read('one', { team: 'ops' }, ctx)).values).to.deep.equal(expected)
      await one.of().change('one', { team: 'ops' }, { at: plugin }, undefined, ctx)
    }
  })

  it('ignore stored values that a newer schema does not accept', async () => {
    await using memory = await openStore('store-memory')
    const open = async (schema: JsonSchema, run: (settings: Settings) => Promise<void>) => {
      const one = user('svc-one', 'one', schema)
      await using _host = await testHost([PLUGIN, one.entry], { give: [given(memory.service(Store))] })
      await run(one.of())
    }
    await open({ type: 'object', properties: { size: { type: 'string' }, gone: {} } }, async settings => {
      await settings.change('one', { principal: 'system' }, { size: 'large', gone: 1 }, undefined, ctx)
    })
    await open({ type: 'object', properties: { size: { type: 'integer', default: 4 } } }, async settings => {
      const { values, ignored } = await settings.effective('one', [], ctx)
      expect([values, [...ignored].sort()]).to.deep.equal([{ size: 4 }, ['gone', 'size']])
    })
  })

  it('need a valid schema', async () => {
    await using memory = await openStore('store-memory')
    for (const schema of [
      true,
      {},
      { type: 'string' },
      { properties: { a: { type: 'nonsense' } } },
      { properties: { a: { default: 1, type: 'string' } } },
    ]) {
      const one = user('svc-one', 'one', schema)
      await using _host = await testHost([PLUGIN, one.entry], { give: [given(memory.service(Store))] })
      expect(await failed(one.of().effective('one', [], ctx)), JSON.stringify(schema)).to.equal('SETTINGS_SCHEMA_INVALID')
    }
  })
})
