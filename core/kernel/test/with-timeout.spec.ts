import { withTimeout } from '@svc/core'
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
