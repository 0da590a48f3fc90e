import { expect } from 'chai'
import { A, B, C, DOWN, policyBench } from './support/bench.ts'

type Bench = ReturnType<typeof policyBench>

const OPEN_MS = 1_000

/** A bench on which the breaker of A is open. */
async function broken(times = 2): Promise<Bench> {
  const bench = policyBench({ breaker_failures: 2, breaker_open_ms: OPEN_MS })
  for (let at = 0; at < times; at++) await bench.fail(DOWN, { turn: `t${at}` })
  return bench
}

describe('the breaker of a model', () => {
  it('opens after so many failures in a row; an answer between them begins the count anew', async () => {
    const bench = await broken(1)
    bench.answer()
    await bench.fail(DOWN)
    expect(bench.state(A)).to.equal('closed')
    expect(bench.call()).to.equal(undefined)
    await bench.fail(DOWN)
    expect(bench.state(A)).to.equal('open')
  })

  it('refuses while it is open, and says when to come again', async () => {
    const bench = await broken()
    bench.hand.now += 400
    expect(bench.call()).to.deep.include({ failure: { kind: 'overloaded', retryable: true, retryAfterMs: 600 } })
    bench.hand.now += 599
    expect(bench.call()).to.deep.include({ failure: { kind: 'overloaded', retryable: true, retryAfterMs: 1 } })
  })

  it('is in the health, by name and for how long, until it has answered, or was not asked for ten minutes', async () => {
    const bench = await broken()
    for (const turn of ['x', 'y']) await bench.fail(DOWN, { at: B, turn })
    const words = async () => (await bench.health()).reason?.replace('open breakers: ', '')
    expect(await words()).to.equal('a/m (for 1 s), b/m (for 1 s)')
    for (const model of ['1', '2', '3'])
      for (const turn of ['x', 'y']) await bench.fail(DOWN, { at: { provider: 'c', model }, turn })
    expect(await words()).to.equal('a/m (for 1 s), b/m (for 1 s), c/1 (for 1 s), 2 more')
    bench.hand.now += OPEN_MS
    bench.call({ turn: 'probe' })
    bench.answer({ turn: 'probe' })
    expect(await words()).to.equal(
      'b/m (the next call tries it), c/1 (the next call tries it), c/2 (the next call tries it), 1 more'
    )
    bench.hand.now += 600_000
    expect(await bench.health()).to.deep.equal({ status: 'healthy' })
  })

  it('sends a turn on to the next model whose own breaker is closed', async () => {
    const bench = await broken()
    expect(bench.call({ fallback: [B, C] })).to.deep.equal(B)
    for (const turn of ['x', 'y']) await bench.fail(DOWN, { at: B, turn })
    expect(bench.call({ fallback: [B, C] })).to.deep.equal(C)
    expect(bench.call({ fallback: [B] })).to.have.property('failure')
  })

  it('lets one turn through when the time is over, and closes when that one is answered', async () => {
    const bench = await broken()
    bench.hand.now += OPEN_MS
    expect(bench.call({ turn: 'probe' })).to.equal(undefined)
    expect(bench.state(A)).to.equal('half_open')
    expect(bench.call({ turn: 'other' })).to.have.property('failure')
    bench.answer({ turn: 'other' })
    expect(bench.state(A)).to.equal('half_open')
    bench.answer({ turn: 'probe' })
    expect(bench.state(A)).to.equal('closed')
    expect(bench.call({ turn: 'other' })).to.equal(undefined)
  })

  it('opens again when that one fails', async () => {
    const bench = await broken()
    bench.hand.now += OPEN_MS
    bench.call({ turn: 'probe' })
    expect(await bench.fail(DOWN, { turn: 'probe', fallback: [B] })).to.deep.equal(B)
    expect(bench.state(A)).to.equal('open')
    bench.hand.now += OPEN_MS - 1
    expect(bench.call()).to.have.property('failure')
    bench.hand.now += 1
    expect(bench.call()).to.equal(undefined)
  })

  it('lets the next turn through at once when the one that tried left without a word', async () => {
    const bench = await broken()
    bench.hand.now += OPEN_MS
    bench.call({ turn: 'probe' })
    bench.end({}, { turn: 'probe' })
    expect(bench.call({ turn: 'next' })).to.equal(undefined)
    bench.answer({ turn: 'next' })
    expect(bench.state(A)).to.equal('closed')
  })

  it('does not wait for ever for a trial whose end is never reported', async () => {
    const bench = await broken()
    bench.hand.now += OPEN_MS
    bench.call({ turn: 'lost' })
    bench.hand.now += OPEN_MS
    expect(bench.call({ turn: 'next' })).to.equal(undefined)
    bench.answer({ turn: 'lost' })
    expect(bench.state(A)).to.equal('half_open')
    bench.answer({ turn: 'next' })
    expect(bench.state(A)).to.equal('closed')
  })

  it('is not moved by what is the fault of the question, nor by calls that it has refused itself', async () => {
    const bench = policyBench({ breaker_failures: 2, breaker_open_ms: OPEN_MS })
    for (const kind of ['bad_request', 'content_refused', 'context_too_long'] as const)
      for (const turn of ['x', 'y']) await bench.fail({ kind, retryable: false }, { turn })
    for (const turn of ['x', 'y']) await bench.fail({ ...DOWN, requestOnly: true }, { turn })
    expect(bench.state(A)).to.equal(undefined)
    await bench.fail(DOWN)
    await bench.fail({ kind: 'bad_request', retryable: false })
    await bench.fail(DOWN)
    expect(bench.state(A)).to.equal('closed')
    await bench.fail(DOWN)
    bench.hand.now += OPEN_MS - 1
    await bench.fail(DOWN, { turn: 'refused' })
    bench.hand.now += 1
    expect(bench.call()).to.equal(undefined)
  })

  it('takes the end of a turn that ran out of its time before a word for no sign of life', async () => {
    const bench = await broken()
    bench.hand.now += OPEN_MS
    bench.call({ turn: 'probe' })
    bench.end({ failure: { kind: 'timeout', retryable: true, requestOnly: true } }, { turn: 'probe' })
    expect(bench.state(A)).to.not.equal('closed')
    expect(bench.call({ turn: 'next' })).to.equal(undefined)
  })

  it('counts a failure in the middle of an answer, and counts none twice', async () => {
    const bench = policyBench({ breaker_failures: 3, breaker_open_ms: OPEN_MS })
    await bench.fail(DOWN)
    bench.end({ failure: DOWN, firstMs: 5 })
    expect(bench.state(A)).to.equal('closed')
    bench.end({ failure: DOWN, firstMs: 5 })
    expect(bench.state(A)).to.equal('open')
  })

  it('takes an answer that did not come from the model for no sign of life', async () => {
    const bench = await broken(1)
    bench.end({ answered: true, events: [{ type: 'finish', reason: 'stop' }], firstMs: 1 })
    await bench.fail(DOWN)
    expect(bench.state(A)).to.equal('open')
  })

  it('lets a turn wait for it where no other model can be asked and the wait is short', async () => {
    const bench = await broken()
    const refused = { kind: 'overloaded', retryable: true, retryAfterMs: OPEN_MS } as const
    expect(await bench.fail(refused, { turn: 'late' })).to.deep.equal({ waitMs: OPEN_MS })
    expect(await bench.fail(refused, { turn: 'late', fallback: [B] })).to.deep.equal(B)
    const slow = policyBench({ breaker_failures: 1, breaker_open_ms: OPEN_MS + 1 })
    expect(await slow.fail(DOWN), 'a wait that is not short').to.equal(undefined)
  })

  it('is in the metrics, by its state', async () => {
    const bench = await broken()
    bench.call()
    const reported = bench.told().filter(line => /breaker|refusals/.test(line))
    expect(reported).to.deep.equal([
      'svc_model_refusals_total{a m} 1',
      'svc_model_breaker{a m closed} 0',
      'svc_model_breaker{a m half_open} 0',
      'svc_model_breaker{a m open} 1',
    ])
  })

  it('is kept for so many models and no more: callers may invent their names', async () => {
    const bench = await broken()
    for (let at = 0; at < 300; at++) await bench.fail(DOWN, { at: { provider: 'a', model: `m${at}` } })
    expect(bench.breakers.states()).to.have.lengthOf(200)
    expect(bench.state(A)).to.equal('open')
  })

  it('never opens where it is switched off', async () => {
    const bench = policyBench({ breaker_failures: 0 })
    for (let at = 0; at < 20; at++) await bench.fail(DOWN)
    expect(bench.call()).to.equal(undefined)
  })
})
