import { createModelNames } from '@svc/plugin-kit'
import { expect } from 'chai'

describe('the names of models in figures', () => {
  it('are their own for the first 200, and one for all others of a provider', () => {
    const nameOf = createModelNames()
    for (let at = 0; at < 300; at++) nameOf({ provider: 'a', model: `m${at}` })
    expect(nameOf({ provider: 'a', model: 'm199' })).to.deep.equal({ provider: 'a', model: 'm199' })
    expect(nameOf({ provider: 'a', model: 'm200' })).to.deep.equal({ provider: 'a', model: 'other' })
    expect(nameOf({ provider: 'b', model: 'm0' })).to.deep.equal({ provider: 'b', model: 'other' })
  })
})
