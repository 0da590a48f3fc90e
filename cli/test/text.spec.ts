import { svcError } from '@svc/core'
import { expect } from 'chai'
import { errorPage } from '../src/command/errors.ts'

describe('an error that a person reads', () => {
  it('contains no terminal control sequences of a plugin', () => {
    const message = 'its setup failed: \u001b[2J\r\nall is well'
    const page = errorPage(svcError('SETUP_FAILED', message, { plugin: 'bad\u202e', hint: '\u001b]0;x\u0007' }))
    expect(page.match(/[^\n\P{C}]/u)).to.equal(null)
    expect(page.split('\n')).to.have.length(4)
  })
})
