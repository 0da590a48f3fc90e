import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin } from '@svc/core'
import { Secrets, Store } from '@svc/core/contracts'
import { secretsKit, type SecretsSubject, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const PLUGIN = { name: '@svc/plugin-secrets', use: new URL('..', import.meta.url) }

const openStore = (name: string, config = {}) =>
  testHost([{ name: `@svc/plugin-${name}`, use: pluginFolder(name) }], { config, strict: false })

/** A host with the secrets over a store, as a process of its own. */
const openProcess = (store: Store, keyFile: string) =>
  testHost([PLUGIN], {
    config: { secrets: { key_file: keyFile } },
    give: [{ name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) }],
  })

async function openTwo(
  stores: (folder: string) => Promise<readonly [Store, Store, () => Promise<unknown>]>
): Promise<SecretsSubject> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-secrets-'))
  const key = join(folder, 'key')
  await writeFile(key, randomBytes(32).toString('base64'), { mode: 0o600 })
  const [first, second, close] = await stores(folder)
  const [one, two] = [await openProcess(first, key), await openProcess(second, key)]
  return {
    secrets: one.service(Secrets),
    other: two.service(Secrets),
    async close() {
      await Promise.all([one.close(), two.close()])
      await close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

describe('secrets in a store', () => {
  describe('in memory', () => {
    const open = () =>
      openTwo(async () => {
        const host = await openStore('store-memory')
        return [host.service(Store), host.service(Store), () => host.close()]
      })
    for (const testCase of secretsKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a file', () => {
    const open = () =>
      openTwo(async folder => {
        const config = { store: { path: join(folder, 'svc.db') } }
        const [first, second] = [await openStore('store-sqlite', config), await openStore('store-sqlite', config)]
        return [first.service(Store), second.service(Store), () => Promise.all([first.close(), second.close()])]
      })
    for (const testCase of secretsKit(open)) it(testCase.title, testCase.run)
  })
})
