import { copyFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Selection, Store } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const serverId = '1-test'

/** A server whose store's file lies in this folder. */
async function server(folder: string) {
  const host = await testHost(['store-sqlite', 'selection', 'modes'].map(pluginFolder), {
    serverId,
    config: { store: { path: join(folder, 'svc.db') }, selection: { profiles_file: join(folder, 'profiles.yaml') } },
  })
  const selection = host.service(Selection)
  const store = host.service(Store)
  const mode = async () => (await selection.effective(testContext())).mode
  return {
    selection,
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
