import { expect } from 'chai'
import type { ModelRef, TurnEnd } from '@svc/core/contracts'
import { A, B, C, type CallDependencies, DOWN, policyBench } from './support/bench.ts'

const late = { ...DOWN, retryAfterMs: 1e6 }

/** Who begins each of so many turns, when the die falls on each side as often. */
function shares(parts: CallDependencies, turns = 100) {
  const bench = policyBench()
  const counts: Record<string, number> = {}
  for (let at = 0; at < turns; at++) {
    bench.hand.random = (at + 0.5) / turns
    const { provider } = (bench.call({ ...parts, turn: `t${at}` }) ?? parts.at ?? A) as ModelRef
    counts[provider] = (counts[provider] ?? 0) + 1
  }
  return counts
}

describe('weights in the chain of a profile', () => {
  it('share the turns with the model of the profile, which has the weight 1', () => {
    expect(shares({ fallback: [{ ...B, weight: 3 }] })).to.deep.equal({ a: 25, b: 75 })
    expect(
      shares({
        fallback: [
          { ...B, weight: 0.5 },
          { ...C, weight: 0.5 },
        ],
      })
    ).to.deep.equal({ a: 50, b: 25, c: 25 })
  })

  it('give the model of the profile the weight of its own entry', () => {
    expect(
      shares({
        fallback: [
          { ...A, weight: 3 },
          { ...B, weight: 1 },
        ],
      })
    ).to.deep.equal({ a: 75, b: 25 })
  })

  it('leave entries without one for failures', () => {
    expect(shares({ fallback: [B] })).to.deep.equal({ a: 100 })
    expect(shares({ fallback: [{ ...B, weight: 1 }, C] })).to.deep.equal({ a: 50, b: 50 })
  })

  it('hold for turns whose model was not chosen', () => {
    const fallback = [{ ...B, weight: 1 }]
    expect(shares({ fallback, source: 'default' })).to.deep.equal({ a: 50, b: 50 })
    expect(shares({ fallback, source: 'request' })).to.deep.equal({ a: 100 })
    expect(shares({ fallback, source: 'override' })).to.deep.equal({ a: 100 })
    expect(shares({ fallback, round: 2 })).to.deep.equal({ a: 100 })
  })

  it('do not hold for a request that names only its provider', () => {
    const fallback = [{ ...B, weight: 8 }]
    expect(shares({ fallback, providerSource: 'request', source: 'default' })).to.deep.equal({ a: 100 })
    expect(shares({ fallback, providerSource: 'override', source: 'default' })).to.deep.equal({ a: 100 })
  })

  it('draw once a turn: who was drawn stays', () => {
    const bench = policyBench()
    const fallback = [
      { ...B, weight: 1 },
      { ...C, weight: 1 },
    ]
    bench.hand.random = 0.5
    expect(bench.call({ fallback })).to.deep.equal(B)
    bench.hand.random = 0.9
    expect(bench.call({ fallback, at: B })).to.equal(undefined)
  })

  it('let the model of the profile stand in for the one that was drawn', async () => {
    const bench = policyBench()
    const fallback = [{ ...B, weight: 1 }]
    bench.hand.random = 0.9
    expect(bench.call({ fallback })).to.deep.equal(B)
    bench.call({ fallback, at: B })
    expect(await bench.fail(late, { fallback, at: B })).to.deep.equal(A)
    expect(await bench.fail(late, { fallback, at: A, tried: [B] })).to.equal(undefined)
  })

  it('are forgotten with the end of a turn, and with too many turns whose end is never reported', () => {
    const { turns } = policyBench()
    turns.keep('t', A)
    turns.ended({ turn: 't', end: {} as TurnEnd, kept: [] })
    expect(turns.own('t')).to.equal(undefined)
    for (let at = 0; at <= 10_000; at++) turns.keep(`t${at}`, A)
    expect([turns.own('t0'), turns.own('t1'), turns.own('t10000')]).to.deep.equal([undefined, A, A])
  })

  it('give nothing to a model whose breaker is open', async () => {
    const bench = policyBench({ breaker_failures: 1 })
    await bench.fail(DOWN, { at: B, turn: 'before' })
    bench.hand.random = 0.9
    expect(bench.call({ fallback: [{ ...B, weight: 9 }] })).to.equal(undefined)
  })
})
