import { expect } from 'chai'
import { clockOffset, storeReport } from '../src/index.ts'

const probed = { kind: 'made-up', durable: true, scope: 'cluster', role: 'primary', clockOffsetMs: 0 } as const

describe('the report of a store', () => {
  it('has the answer of the probe in snake_case', () => {
    expect(storeReport(probed)).to.deep.equal({
      status: 'healthy',
      detail: { kind: 'made-up', durable: true, scope: 'cluster', role: 'primary', clock_offset_ms: 0 },
    })
  })

  it('is unhealthy for a replica, and degraded when the clocks differ', () => {
    expect(storeReport({ ...probed, role: 'replica' })).to.include({ status: 'unhealthy' })
    for (const [clockOffsetMs, word] of [
      [-300_000, 'ahead of'],
      [300_000, 'behind'],
    ] as const) {
      const { status, reason } = storeReport({ ...probed, clockOffsetMs })
      expect(status).to.equal('degraded')
      expect(reason).to.include(`300000 ms ${word} the clock of the store`)
    }
  })
})

describe('the difference of two clocks', () => {
  it('is 0 within the time of the measurement, and else the smallest difference', () => {
    for (const [store, wanted] of [
      [1000, 0],
      [999, 0],
      [1021, 0],
      [900, -100],
      [1120, 100],
    ] as const)
      expect(clockOffset(store, 1000, 1020)).to.equal(wanted)
  })
})
