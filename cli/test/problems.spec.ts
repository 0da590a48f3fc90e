import { errorFacts } from '@svc/cli/command'
import { StartFailed, svcError } from '@svc/core'
import { expect } from 'chai'

const codesOf = (error: unknown) => errorFacts(error).map(({ code }) => code)

describe('the problems of an error', () => {
  it('are those of a failed start, or the error itself', () => {
    expect(codesOf(new StartFailed([svcError('A', 'a'), svcError('B', 'b')]))).to.deep.equal(['A', 'B'])
    expect(codesOf(svcError('A', 'a'))).to.deep.equal(['A'])
    expect(codesOf('only words')).to.deep.equal(['FAILED'])
  })

  it('are those that a failing cleanup has hidden', () => {
    const hidden = new SuppressedError(new Error('the cleanup failed'), new StartFailed([svcError('A', 'a')]))
    expect(codesOf(hidden)).to.deep.equal(['A'])
  })
})
