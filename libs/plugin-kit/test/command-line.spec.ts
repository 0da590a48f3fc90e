import { expect } from 'chai'
import { lineInvalid, nameHint, oneLine, table } from '../src/index.ts'

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

describe('the hint for an unknown name', () => {
  it('is the nearest name; without one, the known names once; without any, what to do', () => {
    expect(nameHint('wether', ['weather', 'news'], 'Add one')).to.equal('did you mean "weather"?')
    expect(nameHint('x', ['weather', 'news'], 'Add one')).to.equal('Use one of: weather, news')
    expect(nameHint('x', ['weather', 'news', 'stock'], 'Add one', 2)).to.equal('Use one of: weather, news and 1 more')
    expect(nameHint('x', [], 'Add one')).to.equal('Add one')
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
