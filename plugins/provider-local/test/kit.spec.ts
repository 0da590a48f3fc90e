import { providerKit } from '@svc/core/testing'
import { openLocal } from './support/local.ts'
import { LOCAL_REQUESTS } from './support/requests.ts'

describe('provider-local, by the provider kit', () => {
  for (const one of providerKit(openLocal, LOCAL_REQUESTS)) it(one.title, one.run)
})
