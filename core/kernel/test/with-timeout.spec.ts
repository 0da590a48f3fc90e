import { abortable, pause, withTimeout } from '@svc/core'
import { expect } from 'chai'

const never = () => new Promise<never>(() => {})

/** What a promise throws. */
const thrown = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('nothing was thrown'),
    (error: unknown) => error
  )

describe('a limit of time', () => {
  it('hands on what the work answers or throws', async () => {
    expect(await withTimeout(1000, () => 'now')).to.equal('now')
    expect(await withTimeout(1000, async () => 'later')).to.equal('later')
    const error = new Error('broken')
    expect(await thrown(withTimeout(1000, () => Promise.reject(error)))).to.equal(error)
    expect(
      await thrown(
        withTimeout(1000, () => {
          throw error
        })
      )
    ).to.equal(error)
  })

  it('ends work that takes too long, whether or not it listens to its signal', async () => {
    const error = new Error('late')
    let reported: AbortSignal | undefined
    const work = (signal: AbortSignal) => {
      reported = signal
      return never()
    }
    expect(await thrown(withTimeout(5, work, { late: () => error }))).to.equal(error)
    expect(reported?.reason).to.equal(error)
    expect(await thrown(withTimeout(5, never))).to.have.property('message', 'the work did not end within 5 ms')
  })

  it('ends with the signal it is given, and does not begin when that has ended', async () => {
    const ending = new AbortController()
    const left = new Error('left')
    const waiting = withTimeout(60_000, never, { signal: ending.signal })
    ending.abort(left)
    expect(await thrown(waiting)).to.equal(left)
    let begun = false
    const work = () => void (begun = true)
    expect(await thrown(withTimeout(60_000, work, { signal: ending.signal }))).to.equal(left)
    expect(begun).to.equal(false)
  })
})

describe('a wait that a signal ends', () => {
  it('passes the result of the work on', async () => {
    const { signal } = new AbortController()
    expect(await abortable(Promise.resolve('now'), signal)).to.equal('now')
    const error = new Error('broken')
    expect(await thrown(abortable(Promise.reject(error), signal))).to.equal(error)
    await pause(1, signal)
  })

  it('rejects with the abort reason, also if the signal has aborted before', async () => {
    const [ending, left] = [new AbortController(), new Error('left')]
    const waiting = [abortable(never(), ending.signal), pause(60_000, ending.signal)]
    ending.abort(left)
    for (const item of waiting) expect(await thrown(item)).to.equal(left)
    expect(await thrown(abortable(Promise.reject(new Error('broken')), ending.signal))).to.equal(left)
    expect(await thrown(pause(60_000, ending.signal))).to.equal(left)
  })
})
