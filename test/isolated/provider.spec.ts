import type { RunningHost } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { isolated, providerKit, testHost } from '@svc/core/testing'
import { LOCAL_REQUESTS } from '../../plugins/provider-local/test/support/requests.ts'

describe('provider-local in a process of its own, by the provider kit', () => {
  let host: RunningHost
  before(async () => {
    const plugin = await isolated(new URL('../../plugins/provider-local/', import.meta.url))
    host = await testHost([plugin], { config: { providers: { local: {} } }, strict: false })
  })
  after(() => host.close())

  const open = () => ({ provider: host.slot(Providers).get('local')! })
  for (const one of providerKit(open, LOCAL_REQUESTS)) if (one.skipped === undefined) it(one.title, one.run)
})
