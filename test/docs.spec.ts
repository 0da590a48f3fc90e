import { expect } from 'chai'
import { committedReference, configReference } from '../scripts/config-reference.ts'

describe('the documents', () => {
  it('have a configuration reference that is what the schemas say (npm run docs writes it)', async () => {
    expect(await committedReference()).to.equal(await configReference())
  })
})
