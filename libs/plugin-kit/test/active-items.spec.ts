import { expect } from 'chai'
import { createActiveItems } from '../src/index.ts'

describe('active items', () => {
  it('have each item until it is removed, in any order', () => {
    const items = createActiveItems<number>()
    const added = Array.from({ length: 100 }, (_, at) => items.add(at))
    const left = new Set(items.all())
    expect(left.size).to.equal(100)
    for (const at of [99, 0, 50, 98, 1, 49]) {
      added[at]![Symbol.dispose]()
      added[at]![Symbol.dispose]() // the second time does nothing
      left.delete(at)
      expect(new Set(items.all())).to.deep.equal(left)
      expect(items.size).to.equal(left.size)
    }
    for (const one of added) one[Symbol.dispose]()
    expect(items.all()).to.deep.equal([])
  })

  it('can be the same item twice', () => {
    const items = createActiveItems<string>()
    const first = items.add('a')
    items.add('a')
    first[Symbol.dispose]()
    expect(items.all()).to.deep.equal(['a'])
  })
})
