import { providerKit } from '@svc/core/testing'
import { REQUESTS } from './support/requests.ts'
import { KEY, openRig } from './support/rig.ts'

describe('provider-openai, by the provider kit', () => {
  for (const one of providerKit(() => openRig(), REQUESTS, { secrets: [KEY], concurrent: 200 })) it(one.title, one.run)
})
