import { expect } from 'chai'
import { providerKit } from '@svc/testing'
import { openLocal } from './support/local.ts'
import { LOCAL_REQUESTS } from './support/requests.ts'

describe('provider-local, by the provider kit', () => {
  const cases = providerKit(openLocal, LOCAL_REQUESTS)
  it('leaves nothing of the kit out but what only an upstream can do', () => {
    const leftOut = new Set(cases.flatMap(testCase => testCase.skipped ?? []))
    expect([...leftOut]).to.deep.equal([
      '`usage`',
      '`filtered`',
      '`pieces`',
      '`badArguments`',
      '`retryAfter`',
      '`cut`',
      '`endsEarly`',
      '`malformed`',
      '`native`',
    ])
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
