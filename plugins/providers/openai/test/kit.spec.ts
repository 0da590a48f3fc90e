import { expect } from 'chai'
import { providerKit } from '@svc/testing'
import { REQUESTS } from './support/requests.ts'
import { KEY, openRig } from './support/rig.ts'

describe('provider-openai, by the provider kit', () => {
  const cases = providerKit(() => openRig(), REQUESTS, { secrets: [KEY], concurrent: 200 })
  it('leaves nothing of the kit out', () => {
    const leftOut = new Set(cases.flatMap(testCase => testCase.skipped ?? []))
    expect([...leftOut]).to.deep.equal([])
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
