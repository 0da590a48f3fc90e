import { setTimeout as pause } from 'node:timers/promises'
import type { ToolStep } from '@svc/core/contracts'
import { RunningCall, type StepsEnd, watchedSteps } from '@svc/mcp-protocol'
import { expect } from 'chai'

const STEP: ToolStep = { type: 'progress', progress: 1 }
const LAST: ToolStep = { type: 'result', result: { content: [] } }

/** Steps that are watched, what was heard of their end, and whether they were closed. */
function steps(make: () => AsyncIterable<ToolStep> | Promise<AsyncIterable<ToolStep>>) {
  const ends: StepsEnd[] = []
  const watched = watchedSteps(make, end => void ends.push(end))
  return { ends, reader: watched[Symbol.asyncIterator]() }
}

describe('the steps of a call that somebody watches', () => {
  it('end once, with their last word, before their reader has it; and are closed with their reader', async () => {
    let closed = 0
    const { ends, reader } = steps(async function* () {
      try {
        yield STEP
        yield LAST
      } finally {
        closed++
      }
    })
    expect((await reader.next()).value).to.equal(STEP)
    expect(ends).to.deep.equal([])
    expect((await reader.next()).value).to.equal(LAST)
    expect([ends, closed]).to.deep.equal([[{ last: LAST }], 0])
    await reader.return?.()
    expect([ends, closed, (await reader.next()).done]).to.deep.equal([[{ last: LAST }], 1, true])
  })

  it('end once where they come to no last word, fail, or lose their reader', async () => {
    const mute = steps(async function* () {})
    expect((await mute.reader.next()).done).to.equal(true)
    expect((await mute.reader.next()).done).to.equal(true)
    const broken = new Error('broken')
    const failing = steps(async function* () {
      yield STEP
      throw broken
    })
    await failing.reader.next()
    expect(await failing.reader.next().catch((error: unknown) => error)).to.equal(broken)
    await failing.reader.return?.()
    const left = steps(async function* () {
      yield STEP
    })
    await left.reader.next()
    await left.reader.return?.()
    await left.reader.return?.()
    expect([mute.ends, failing.ends, left.ends]).to.deep.equal([['incomplete'], [{ thrown: broken }], ['abandoned']])
  })

  it('end by what hinders their begin, and begin no more where their reader has left meanwhile', async () => {
    const refused = new Error('refused')
    const hindered = steps(() => Promise.reject(refused))
    expect(await hindered.reader.next().catch((error: unknown) => error)).to.equal(refused)
    let begun = false
    const opening = Promise.withResolvers<AsyncIterable<ToolStep>>()
    const late = steps(() => opening.promise)
    const first = late.reader.next()
    await late.reader.return?.()
    opening.resolve(
      (async function* () {
        begun = true
        yield LAST
      })()
    )
    expect([(await first).done, begun]).to.deep.equal([true, false])
    expect([hindered.ends, late.ends]).to.deep.equal([[{ thrown: refused }], ['abandoned']])
  })

  it('without a reader have not begun, and so do not end', async () => {
    const { ends, reader } = steps(async function* () {
      yield LAST
    })
    await reader.return?.()
    expect([ends, (await reader.next()).done]).to.deep.equal([[], true])
  })
})

describe('the time of a call', () => {
  it('grows with each progress, up to the maximum, and the time stops while it waits for an answer', async () => {
    const times = { timeoutMs: 200, totalMs: 500 }
    const call = new RunningCall('x', { tool: 'ask', args: {}, trace: {} }, times, () => '')
    const late = call.next().catch((error: Error) => error.message)
    const begun = performance.now()
    const progress = { type: 'progress', progress: 1 } as const
    call.pause()
    await pause(600)
    call.extend()
    for (let times = 0; times < 3; times++) {
      await pause(120)
      call.step(progress)
    }
    expect((await call.next()).value).to.deep.equal(progress)
    await call.next()
    expect(await late).to.deep.equal({ done: false, value: progress })
    expect(await call.next().catch((error: Error) => error.message)).to.equal('x: it did not answer within 0.5 s')
    expect(performance.now() - begun).to.be.within(1_050, 1_600)
  })
})
