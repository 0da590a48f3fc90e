import { createCoalescer, Wakeup } from '@svc/core'
import { expect } from 'chai'

/** Work whose runs end when the test says so. */
function openWork() {
  const runs: PromiseWithResolvers<number>[] = []
  const coalescer = createCoalescer(() => {
    const run = Promise.withResolvers<number>()
    runs.push(run)
    return run.promise
  })
  return { runs, coalescer }
}

describe('a coalescer', () => {
  it('shares a run in progress with callers that join', async () => {
    const { runs, coalescer } = openWork()
    const both = Promise.all([coalescer.join(), coalescer.join()])
    runs[0]!.resolve(1)
    expect(await both).to.deep.equal([1, 1])
    expect(runs).to.have.length(1)
  })

  it('runs once more for all requests during a run, also after a failure', async () => {
    const { runs, coalescer } = openWork()
    const first = coalescer.request()
    const later = Promise.all([coalescer.request(), coalescer.request()])
    runs[0]!.reject(new Error('no'))
    expect(await first.catch((error: Error) => error.message)).to.equal('no')
    expect(runs).to.have.length(2)
    expect(coalescer.isRunning).to.equal(true)
    runs[1]!.resolve(2)
    expect(await later).to.deep.equal([2, 2])
    expect(coalescer.isRunning).to.equal(false)
  })

  it('is idle after the last requested run', async () => {
    const { runs, coalescer } = openWork()
    void coalescer.request()
    void coalescer.request()
    let isIdle = false
    const idle = coalescer.idle().then(() => (isIdle = true))
    runs[0]!.resolve(1)
    while (runs.length < 2) await Promise.resolve()
    expect(isIdle).to.equal(false)
    runs[1]!.resolve(2)
    await idle
  })
})

describe('a wake-up', () => {
  it('ends each wait, and is not missed by a wait that begins after it', async () => {
    const wakeup = new Wakeup()
    const { rings } = wakeup
    const { signal } = new AbortController()
    const both = Promise.all([wakeup.after(rings, 60_000, signal), wakeup.after(rings, 60_000, signal)])
    wakeup.ring()
    await both
    await wakeup.after(rings, 60_000, signal)
  })
})
