import { expect } from 'chai'
import { JSON_FLAG, oneLine, readLine, table } from '../src/index.ts'

describe('a command line', () => {
  it('is read as words and options', () => {
    const { values, positionals } = readLine(['a', '--json', 'b'], 'x <one> <two>', JSON_FLAG, [1, 2])
    expect({ ...values }).to.deep.equal({ json: true })
    expect(positionals).to.deep.equal(['a', 'b'])
  })

  for (const [args, message] of [
    [[], 'something is missing'],
    [['a', 'b', 'c'], '"c" is one word too many'],
    [['a', '--nope'], "Unknown option '--nope'"],
  ] as const)
    it(`of the words "${args.join(' ')}" is refused with the usage`, () => {
      expect(() => readLine(args, 'x <one> [<two>]', JSON_FLAG, [1, 2]))
        .to.throw(message)
        .and.include({ code: 'COMMAND_LINE_INVALID', mend: 'write: svc x <one> [<two>]' })
    })
})

describe('what a terminal is told', () => {
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
