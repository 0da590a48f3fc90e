import { expect } from 'chai'
import { QueueHealth } from '../src/queue-health.ts'

const LATE_MS = 30_000

describe('the health of a queue of runs', () => {
  const clock = performance.now.bind(performance)
  let now = clock()
  const pass = (ms: number) => (now += ms)
  before(() => (performance.now = () => now))
  after(() => (performance.now = clock))
  const taking = () => {
    const health = new QueueHealth(LATE_MS)
    return { health, stop: health.take(), status: () => health.report().status }
  }

  it('is bad when each attempt to read the queue fails, however often the worker tries', () => {
    const { health, stop, status } = taking()
    stop('failed')
    for (let times = 0; times < 29; times++) {
      pass(1_000)
      const again = health.take()
      expect(status(), `after ${times + 1} s`).to.equal('healthy')
      again('failed')
    }
    pass(2_000)
    expect(status()).to.equal('unhealthy')
    const again = health.take()
    expect(status(), 'it has not read it yet').to.equal('unhealthy')
    health.looked()
    expect(status()).to.equal('healthy')
    again('done')
  })

  it('is good while no worker takes runs, and when one begins again', () => {
    const { health, stop, status } = taking()
    stop('done')
    pass(LATE_MS * 2)
    expect(status()).to.equal('healthy')
    health.take()
    expect(status()).to.equal('healthy')
  })

  it('is good while the worker has no room, and bad when a due run is not given to it', () => {
    const { health, status } = taking()
    health.busy()
    pass(LATE_MS * 2)
    expect(status()).to.equal('healthy')
    health.idle()
    health.overdue(31)
    pass(29_000)
    health.looked()
    expect(status()).to.equal('healthy')
    pass(2_000)
    health.looked()
    expect(status()).to.equal('unhealthy')
  })
})
