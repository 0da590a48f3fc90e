import { expect } from 'chai'
import { differing } from '../page/src/differing.ts'

const side = (before: string, after: string, kind: 'gone' | 'new') =>
  differing(before, after)
    .filter(part => part.kind === 'same' || part.kind === kind)
    .map(({ text }) => text)
    .join('')

describe('what differs between two texts', () => {
  it('is found by words, and by lines where there are several', () => {
    expect(differing('Adds two numbers.', 'Adds three numbers.')).to.deep.equal([
      { kind: 'same', text: 'Adds ' },
      { kind: 'gone', text: 'two' },
      { kind: 'new', text: 'three' },
      { kind: 'same', text: ' numbers.' },
    ])
    expect(differing('a\nb\nc', 'a\nx y\nc')).to.deep.equal([
      { kind: 'same', text: 'a\n' },
      { kind: 'gone', text: 'b\n' },
      { kind: 'new', text: 'x y\n' },
      { kind: 'same', text: 'c' },
    ])
    expect(differing('same', 'same')).to.deep.equal([{ kind: 'same', text: 'same' }])
  })

  it('leaves out nothing of either text, however different and long they are', () => {
    const words = (seed: number, count: number) => Array.from({ length: count }, (_, at) => `w${(at * seed) % 17}`).join(' ')
    for (const [before, after] of [
      ['', 'new'],
      ['gone', ''],
      [words(3, 60), words(5, 80)],
      [words(7, 3_000), words(11, 3_000)],
    ] as const) {
      expect(side(before, after, 'gone')).to.equal(before)
      expect(side(before, after, 'new')).to.equal(after)
    }
  })
})
