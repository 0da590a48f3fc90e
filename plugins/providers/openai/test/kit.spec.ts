import { providerKit } from '@svc/testing'
import { expect } from 'chai'
import { PRESET_NAMES } from '../src/presets.ts'
import { REQUESTS } from './support/requests.ts'
import { KEY, openRig } from './support/rig.ts'

for (const preset of ['openai', 'vllm'] as const)
  describe(`provider-openai for ${preset}, by the provider kit`, () => {
    const cases = providerKit(() => openRig({ preset }), REQUESTS, { secrets: [KEY], concurrent: 200 })
    it('leaves nothing of the kit out', () => {
      const leftOut = new Set(cases.flatMap(testCase => testCase.skipped ?? []))
      expect([...leftOut]).to.deep.equal([])
    })
    for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
  })

describe('provider-openai, with each preset', () => {
  for (const preset of PRESET_NAMES)
    for (const { title, skipped, run } of providerKit(() => openRig({ preset }), REQUESTS))
      if (skipped === undefined && /ignores no feature|has a sample|embeddings|`n`|of each token/.test(title))
        it(`${title}: ${preset}`, run)
})
