import { once } from 'node:events'
import { copyFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin } from '@svc/core'
import { Peers, Selection, type SelectionChange, Store } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const serverId = '1-test'

/** A server whose store's file lies in this folder. */
async function server(folder: string) {
  const changes: SelectionChange[] = []
  const listener = definePlugin({
    setup: scope => void scope.tap(Selection.hooks.changed, change => void changes.push(change)),
  })
  const plugins = ['store-sqlite', 'selection', 'modes'].map(pluginFolder)
  const host = await testHost([...plugins, { name: 'listener', use: listener }], {
    serverId,
    config: { store: { path: join(folder, 'svc.db') }, selection: { profiles_file: join(folder, 'profiles.yaml') } },
  })
  const selection = host.service(Selection)
  const store = host.service(Store)
  const mode = async () => (await selection.effective(testContext())).mode
  return {
    selection,
    changes,
    mode,
    async untilMode(wanted: string) {
      while ((await mode()) !== wanted) await wait(5)
    },
    version: async () => (await store.get('sessions', serverId, testContext()))?.version,
    /** As another worker of the same server does. */
    put: (value: object) =>
      store.batch([{ op: 'put', collection: 'sessions', key: serverId, value: { ...value, changed: 0 } }], {}, testContext()),
    [Symbol.asyncDispose]: () => host.close(),
  }
}

describe('the session of a server whose store reports no changes', () => {
  it('is read again when messages of other workers can be lost', async () => {
    let missed: () => Promise<unknown> = async () => {}
    const peers = definePlugin({
      provides: Peers,
      setup: ({ hooks }) => {
        missed = () => hooks.missed({ from: undefined }, testContext())
        return {
          broadcast: async () => {},
          metrics: async () => [],
          acquire: async () => true,
          release: async () => {},
          self: async () => 'w1',
          async *ask() {},
        }
      },
    })
    await using data = await testHost([pluginFolder('store-memory')])
    const store = data.service(Store)
    const silent = definePlugin({
      provides: Store,
      setup: () => ({
        ...(Object.fromEntries(
          Object.keys(Store.methods).map(name => [name, Reflect.get(store, name).bind(store)])
        ) as unknown as Store),
        // oxlint-disable-next-line require-yield -- it reports nothing
        async *watch(_: string, { signal }: { readonly signal: AbortSignal }) {
          await once(signal, 'abort')
        },
      }),
    })
    const give = [
      { name: 'test:peers', use: peers },
      { name: 'test:store', use: silent },
    ]
    await using host = await testHost(['selection', 'modes'].map(pluginFolder), { serverId, strict: false, give })
    const mode = async () => (await host.service(Selection).effective(testContext())).mode
    const value = { mode: 'plan', changed: 0 }
    await store.batch([{ op: 'put', collection: 'sessions', key: serverId, value }], {}, testContext())
    expect(await mode(), 'nothing has reported it').to.equal('build')
    await missed()
    expect(await mode()).to.equal('plan')
  })
})

describe('the session of a server whose store is put back to an older one', () => {
  let folder = ''
  let putBack = async () => {}
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-session-'))
    const file = join(folder, 'svc.db')
    await writeFile(join(folder, 'profiles.yaml'), 'profiles: { default: {} }\n')
    {
      await using before = await server(folder)
      await before.selection.switchMode('plan', testContext())
    }
    await copyFile(file, `${file}.backup`)
    putBack = () => rename(`${file}.backup`, file)
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('takes what that has, and watches it for what others switch', async () => {
    await using found = await server(folder)
    for (const mode of ['review', 'explore', 'build']) await found.selection.switchMode(mode, testContext())
    await putBack()
    await found.untilMode('plan')
    await found.put({ mode: 'review' })
    await found.untilMode('review')
    expect(await found.version()).to.equal(2)
  })

  it('is switched as ever', async () => {
    await using found = await server(folder)
    for (const mode of ['review', 'explore', 'build']) await found.selection.switchMode(mode, testContext())
    await putBack()
    await found.selection.switchMode('delegate', testContext())
    expect([await found.mode(), await found.version()]).to.deep.equal(['delegate', 2])
  })
})

describe('a change of the session', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-session-'))
    await writeFile(join(folder, 'profiles.yaml'), 'profiles: { default: {}, careful: { mode: review } }\n')
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('is reported once, before the switch is answered, with the mode in force', async () => {
    await using found = await server(folder)
    await found.selection.switchProfile('careful', testContext())
    expect(found.changes).to.deep.equal([{ profile: 'careful', mode: 'review' }])
    expect(await found.selection.mode(testContext())).to.equal('review')
    await found.selection.switchMode('plan', testContext())
    await wait(20)
    expect(found.changes.slice(1)).to.deep.equal([{ profile: 'careful', mode: 'plan' }])
  })

  it('is reported when another worker made it; the state at the start is not', async () => {
    {
      await using before = await server(folder)
      await before.selection.switchMode('plan', testContext())
    }
    await using found = await server(folder)
    expect([found.changes, await found.selection.mode(testContext())]).to.deep.equal([[], 'plan'])
    await found.put({ mode: 'explore' })
    while (found.changes.length === 0) await wait(5)
    expect(found.changes).to.deep.equal([{ profile: 'default', mode: 'explore' }])
  })
})
