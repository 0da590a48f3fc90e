import { expect } from 'chai'
import { pricesOf } from '../page/src/price.ts'

/** Spaces as wide as a digit are underlines here. */
const shown = (...prices: Parameters<typeof pricesOf>[0]) => pricesOf(prices).map(text => text.replaceAll('\u2007', '_'))

describe('prices in a column', () => {
  it('have as many digits as the most exact of them, and the same width', () => {
    expect(shown({ input: 3, output: 15 }, { input: 0.25, output: 1.255 }, { input: 1_200, output: 0 })).to.deep.equal([
      '____3.000 / ___15.000',
      '____0.250 / ____1.255',
      '1,200.000 / ____0.000',
    ])
  })

  it('have no point where all are whole, and a dash where there is none', () => {
    expect(shown({ input: 10, output: 5 }, null)).to.deep.equal(['10 / _5', '–'])
    expect(shown(null, null)).to.deep.equal(['–', '–'])
    expect(shown()).to.deep.equal([])
  })

  it('have at most six digits after the point: fewer than errors of binary numbers', () => {
    expect(shown({ input: 0.1 + 0.2, output: 0.000_000_4 })).to.deep.equal(['0.3 / 0.0'])
    expect(shown({ input: 0.000_001, output: 1 })).to.deep.equal(['0.000001 / 1.000000'])
  })
})
