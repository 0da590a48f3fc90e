import { expect } from 'chai'
import { clientKey } from '../src/limits.ts'

describe('the client that a request is counted for', () => {
  it('keeps the id of a principal apart from an address, and what no store can hold as a digest', () => {
    const keyOf = (id: string) => clientKey({ id, scopes: [] }, 'principal')
    expect(keyOf('ann')).to.equal('rate_limit/principal/ann')
    const odd = ['x'.repeat(2000), 'x'.repeat(2001), 'a\0b', 'a\ud800', 'a\ud801', keyOf('a\0b').split('/')[2]!].map(keyOf)
    expect(new Set(odd).size).to.equal(odd.length)
    for (const key of odd) expect(key).to.match(/^rate_limit\/principal\/~[\w-]{43}$/)
  })
})
