import type { PluginEntry } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { isolated, storeKit, testHost } from '@svc/core/testing'
import { sideBySide } from '../support/side-by-side.ts'

describe('the store in memory in a process of its own, by the store kit', () => {
  const it = sideBySide()
  let plugin: PluginEntry
  before(async () => {
    plugin = await isolated(new URL('../../plugins/store-memory/', import.meta.url))
  })

  const open = async () => {
    const host = await testHost([plugin], { strict: false })
    return { store: host.service(Store), [Symbol.asyncDispose]: () => host.close() }
  }
  for (const one of storeKit(open)) it(one.title, one.run)
})
