import type { ModelCall, ModelEvent } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { createCache, createAnswerStore } from '../src/cache.ts'

/** A cache with a clock that the test sets. */
function answerStoreOf(limits: Partial<Parameters<typeof createAnswerStore>[0]>) {
  const clock = { now: 1 }
  return { clock, answers: createAnswerStore({ ttlMs: 1_000, entries: 100, bytes: 1_000_000, ...limits }, () => clock.now) }
}

const CALL: ModelCall = {
  turn: 't',
  selected: {
    provider: 'p',
    model: 'm',
    source: { provider: 'profile', model: 'profile' },
    profile: { name: 'd' },
    mode: 'build',
    fallback: [],
  },
  request: { model: 'm', messages: [] },
  kind: 'chat',
  round: 1,
  attempt: 1,
  tried: [],
}

describe('what the cache keeps', () => {
  it('counts until its time is over, however often it is read', () => {
    const { answers, clock } = answerStoreOf({ ttlMs: 1_000 })
    answers.put('k', 'text')
    clock.now = 1_001
    expect(answers.get('k')).to.equal('text')
    clock.now = 1_002
    expect(answers.get('k')).to.equal(undefined)
  })

  it('does not become younger when it is given', () => {
    const { answers, clock } = answerStoreOf({ ttlMs: 1_000 })
    const cache = createCache({ answers, counts: { asked: () => undefined }, shared: false })
    const events: ModelEvent[] = [{ type: 'finish', reason: 'stop' }]
    const ended = { usage: { input: 0, output: 0 }, durationMs: 1, firstMs: 1, events }
    cache.done({ ...CALL, ...ended }, testContext())
    clock.now = 900
    expect(cache.called(CALL, testContext())).to.deep.equal({ events })
    cache.done({ ...CALL, ...ended, answered: true }, testContext())
    clock.now = 1_002
    expect(cache.called(CALL, testContext())).to.equal(undefined)
  })

  it('is not counted in once its time is over', () => {
    const { answers, clock } = answerStoreOf({ ttlMs: 1_000 })
    answers.put('old', 'text')
    clock.now = 500
    answers.put('new', 'text')
    expect(answers.size).to.equal(2)
    clock.now = 1_002
    expect(answers.size).to.equal(1)
  })

  it('is so many at most: the one that was read longest ago goes', () => {
    const { answers } = answerStoreOf({ entries: 2 })
    for (const key of ['a', 'b']) answers.put(key, key)
    answers.get('a')
    answers.put('c', 'c')
    expect(['a', 'b', 'c'].map(key => answers.get(key))).to.deep.equal(['a', undefined, 'c'])
  })

  it('is so many bytes at most, and what alone is more is not kept', () => {
    const { answers } = answerStoreOf({ bytes: 3_000 })
    for (const key of ['a', 'b', 'c']) answers.put(key, 'x'.repeat(1_000))
    expect(answers.size).to.equal(2)
    answers.put('big', 'é'.repeat(1_500))
    expect(answers.get('big')).to.equal(undefined)
    expect(answers.size).to.equal(2)
  })

  it('takes no more room when it is kept anew', () => {
    const { answers } = answerStoreOf({ bytes: 3_000 })
    answers.put('b', 'x'.repeat(1_000))
    for (let at = 0; at < 10; at++) answers.put('a', 'x'.repeat(1_000))
    expect(answers.get('b')).to.have.lengthOf(1_000)
  })
})
