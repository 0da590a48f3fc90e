import type { ModelFailureKind } from '@svc/core/contracts'
import { expect } from 'chai'
import { A, B, DOWN, policyBench } from './support/bench.ts'

const failure = (kind: ModelFailureKind, more = {}) => ({ kind, retryable: true, ...more })

describe('a model call that failed', () => {
  it('is tried again after a wait that doubles up to its limit, of which a random part is waited', async () => {
    const bench = policyBench({ attempts: 9, backoff_ms: 100, backoff_limit_ms: 350, breaker_failures: 0 })
    const waits = async (random: number) => {
      bench.hand.random = random
      return Promise.all([1, 2, 3, 4].map(attempt => bench.fail(DOWN, { attempt })))
    }
    expect(await waits(1)).to.deep.equal([100, 200, 350, 350].map(waitMs => ({ waitMs })))
    expect(await waits(0.5)).to.deep.equal([50, 100, 175, 175].map(waitMs => ({ waitMs })))
    expect(await waits(0)).to.deep.equal([0, 0, 0, 0].map(waitMs => ({ waitMs })))
  })

  it('waits as long as the model says, and a random part more', async () => {
    const bench = policyBench({ backoff_ms: 100 })
    bench.hand.random = 0.5
    expect(await bench.fail({ ...DOWN, retryAfterMs: 3_000 })).to.deep.equal({ waitMs: 3_050 })
  })

  it('is not tried again where the model says a time that is too long to wait: another is asked, or the turn ends', async () => {
    const bench = policyBench({ wait_limit_ms: 2_000 })
    const late = failure('rate_limited', { retryAfterMs: 2_001 })
    expect(await bench.fail(late)).to.equal(undefined)
    expect(await bench.fail(late, { fallback: [B] })).to.deep.equal(B)
    expect(await bench.fail(failure('rate_limited', { retryAfterMs: 2_000 }))).to.have.property('waitMs')
  })

  it('is tried so often and no more', async () => {
    const bench = policyBench({ attempts: 2 })
    expect(await bench.fail(DOWN, { attempt: 1 })).to.have.property('waitMs')
    expect(await bench.fail(DOWN, { attempt: 2 })).to.equal(undefined)
    expect(await policyBench({ attempts: 1 }).fail(DOWN)).to.equal(undefined)
  })

  it('is not tried again where that cannot help, and another is asked only where the fault is not in what was asked', async () => {
    const after = (kind: ModelFailureKind, more = {}) =>
      policyBench().fail({ kind, retryable: false, ...more }, { fallback: [B] })
    expect(await after('authentication')).to.deep.equal(B)
    expect(await after('network')).to.deep.equal(B)
    expect(await after('bad_request')).to.equal(undefined)
    expect(await after('context_too_long')).to.equal(undefined)
    expect(await after('content_refused')).to.equal(undefined)
    expect(await after('bad_request', { upstreamStatus: 404 })).to.deep.equal(B)
  })

  it('that was silent for all of its time is not tried again while another can be asked', async () => {
    expect(await policyBench().fail(failure('timeout'))).to.have.property('waitMs')
    expect(await policyBench().fail(failure('timeout'), { fallback: [B] })).to.deep.equal(B)
  })

  it('is counted by what was done about it, and names that callers invent do not pile up', async () => {
    const bench = policyBench({ attempts: 2, breaker_failures: 0 })
    await bench.fail(DOWN)
    await bench.fail(DOWN, { attempt: 2, fallback: [B] })
    expect(bench.told()).to.deep.equal(['svc_model_retries_total{a m} 1', 'svc_model_fallbacks_total{a m} 1'])
    for (let at = 0; at < 300; at++) await bench.fail(DOWN, { at: { provider: 'a', model: `m${at}` } })
    const retries = bench.told().filter(line => line.startsWith('svc_model_retries_total'))
    expect(retries).to.have.lengthOf(201)
    expect(retries).to.include('svc_model_retries_total{a other} 101')
  })
})

describe('the chain of a profile', () => {
  const C = { provider: 'c', model: 'm' }
  const late = { ...DOWN, retryAfterMs: 1e6 }

  it('is gone through in order, without models that were given up in this turn and providers that are not there', async () => {
    const bench = policyBench()
    const fallback = [B, C]
    expect(await bench.fail(late, { fallback })).to.deep.equal(B)
    expect(await bench.fail(late, { at: B, fallback, tried: [A] })).to.deep.equal(C)
    expect(await bench.fail(late, { at: C, fallback, tried: [A, B] })).to.equal(undefined)
    bench.hand.gone.add('b')
    expect(await bench.fail(late, { fallback, turn: 'next' })).to.deep.equal(C)
  })

  it('goes on past a model that stands in and cannot take what was asked', async () => {
    const bench = policyBench()
    const short = { kind: 'context_too_long', retryable: false } as const
    expect(await bench.fail(short, { fallback: [B, C] })).to.equal(undefined)
    expect(await bench.fail(short, { at: B, fallback: [B, C], tried: [A] })).to.deep.equal(C)
    expect(await bench.fail(short, { at: B, fallback: [B, C] })).to.deep.equal(C)
    expect(await bench.fail(short, { at: B, fallback: [B, C], source: 'request' })).to.equal(undefined)
  })

  it('stands in for a model that a caller asked for by name only where it names that one', async () => {
    const bench = policyBench()
    expect(await bench.fail(late, { source: 'request', fallback: [B, C] })).to.equal(undefined)
    expect(await bench.fail(late, { source: 'request', fallback: [B, A, C] })).to.deep.equal(B)
    expect(await bench.fail(late, { source: 'override', fallback: [B] })).to.deep.equal(B)
  })
})
