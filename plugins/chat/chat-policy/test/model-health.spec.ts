import { systemContext } from '@svc/core'
import type { ModelDone, ModelFailed, Peers, WorkerMetrics } from '@svc/core/contracts'
import { expect } from 'chai'
import { createBreakers, createModelHealth } from '../src/model-health.ts'
import { A, B, DOWN } from './support/bench.ts'

const ctx = systemContext(new AbortController().signal, 'test')

/** The counts of one worker, whose breakers open with the second failure. */
function worker(peers?: Peers) {
  const breakers = createBreakers({ failures: 2, openMs: 60_000, now: () => performance.now() })
  const health = createModelHealth(breakers, peers)
  let call = 0
  return {
    health,
    answer: (firstMs: number, at = A) => health.done({ selected: at, events: [], firstMs } as unknown as ModelDone),
    fail(message: string, at = A) {
      breakers.failed(at, String(++call))
      health.failed({ selected: at, message, failure: DOWN } as unknown as ModelFailed)
      health.done({ selected: at, failure: { ...DOWN, upstreamStatus: 503 }, firstMs: 0 } as unknown as ModelDone)
    },
    metrics: (more: Partial<WorkerMetrics> = {}) => ({ ...health.own({}), ...more }) as WorkerMetrics,
  }
}

/** A worker that sees these metrics of all. */
const among = (...all: readonly WorkerMetrics[]) =>
  createModelHealth(createBreakers({ failures: 2, openMs: 1, now: () => 0 }), { metrics: async () => all } as unknown as Peers)

describe('the health of models', () => {
  it('has calls, failures, first-token times and the last error of a model', async () => {
    const own = worker()
    own.answer(10)
    own.answer(30)
    own.fail('the upstream is down')
    own.health.done({ selected: A, answered: true, firstMs: 0 } as unknown as ModelDone)
    const [state] = await own.health.service.states(ctx)
    expect(state).to.deep.include({ ...A, breaker: 'closed', openIn: 0, calls: 3, failures: 1, firstMs: { last: 30, mean: 20 } })
    expect(state!.lastError).to.include({ kind: 'overloaded', message: 'the upstream is down', upstreamStatus: 503 })
  })

  it('adds up all workers; breakers count in running workers of the last reload only', async () => {
    const [open, fine, old, gone] = [worker(), worker(), worker(), worker()]
    for (const each of [open, old, gone]) for (const message of ['one', 'two']) each.fail(message)
    fine.answer(40)
    fine.answer(50, B)
    const states = await among(
      open.metrics({ generation: 2 }),
      fine.metrics({ generation: 2 }),
      old.metrics({ generation: 1 }),
      gone.metrics({ ended: true })
    ).service.states(ctx)
    expect(
      states.map(({ provider, breaker, openIn, calls, failures }) => [provider, breaker, openIn, calls, failures])
    ).to.deep.equal([
      ['a', 'open', 1, 7, 6],
      ['b', 'closed', 0, 1, 0],
    ])
    expect(states[0]!.retryAt).to.be.greaterThan(Date.now() + 30_000)
  })

  it('takes over the totals of a worker that has ended, and not its breakers', async () => {
    const [next, gone] = [worker(), worker()]
    gone.fail('one')
    gone.fail('two')
    next.answer(10)
    next.health.inherit(gone.metrics({ ended: true }))
    const [state] = await next.health.service.states(ctx)
    expect(state).to.deep.include({ breaker: 'closed', calls: 3, failures: 2 })
    expect(state!.lastError).to.include({ message: 'two' })
  })

  it('keeps a bounded number of models, which callers can invent', async () => {
    const own = worker()
    for (let at = 0; at < 1_000; at++) own.answer(1, { provider: 'a', model: `m${at}` })
    const states = await own.health.service.states(ctx)
    expect(states).to.have.lengthOf(200)
    expect(states.map(({ model }) => model))
      .to.include('m999')
      .and.not.include('m0')
  })
})
