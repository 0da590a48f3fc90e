import { expect } from 'chai'
import { lineInvalid, oneLine, table } from '../src/index.ts'

describe('a wrong command line', () => {
  it('is refused with the usage', () => {
    const error = lineInvalid('--to cannot be written', 'x <one> [<two>]')
    expect(error).to.include({
      code: 'COMMAND_LINE_INVALID',
      message: '--to cannot be written',
      hint: 'Usage: svc x <one> [<two>]',
    })
  })
})

describe('what a terminal shows', () => {
  it('is a table whose columns stand below each other', () => {
    expect(
      table([
        ['NAME', 'X'],
        ['longer', ''],
      ])
    ).to.deep.equal(['NAME    X', 'longer'])
  })

  it('is one line without what would steer it, cut where it is long', () => {
    expect(oneLine('a\u001b[31mb\n\u202ec')).to.equal('ab c')
    expect(oneLine('abcdef', 4)).to.equal('abc…')
  })
})
