import type { Span } from '@svc/core'
import { expect } from 'chai'
import { createCollector } from '../src/collector.ts'
import { keyOf, type RootRecord, type StoredSpan } from '../src/space.ts'

const hex = (at: number, length: number) => at.toString(16).padStart(length, '0')

/** A span of the trace with this number. */
function spanOf(trace: number, id: number, more: Partial<Span> = {}): Span {
  return {
    traceId: hex(trace, 32),
    spanId: hex(id, 16),
    name: `span ${id}`,
    kind: 'internal',
    startMs: 1_000,
    endMs: 2_000,
    parentSpanId: undefined,
    status: 'unset',
    reason: undefined,
    attributes: {},
    events: undefined,
    isRoot: false,
    isSampled: true,
    plugin: 'test',
    principal: 'anna',
    requestId: 'mine',
    ...more,
  }
}
const begunOf = (span: Span): Span => ({ ...span, endMs: undefined, isRoot: true })

function open() {
  const roots: RootRecord[] = []
  const stored = new Map<string, StoredSpan[]>()
  const clock = { now: 0 }
  const sink = {
    root: (root: RootRecord) => void roots.push(root),
    spans: (key: string, spans: readonly StoredSpan[]) => void stored.set(key, [...(stored.get(key) ?? []), ...spans]),
  }
  const collector = createCollector({ worker: 'w', sink, now: () => clock.now })
  const request = (trace: number, more: Partial<Span> = {}, inner: readonly Span[] = []) => {
    const root = spanOf(trace, 1, { isRoot: true, name: 'request', ...more })
    collector.take([begunOf(root), ...inner, root])
    return root
  }
  return { collector, roots, stored, clock, request }
}

describe('the collector of traces', () => {
  it('keeps a root with the sums of its spans', () => {
    const { roots, stored, request } = open()
    const model = (id: number) =>
      spanOf(7, id, {
        attributes: {
          'gen_ai.response.model': 'm',
          'gen_ai.usage.input_tokens': 10,
          'gen_ai.usage.output_tokens': 2,
          'svc.cost': 0.25,
        },
      })
    const turn = spanOf(7, 4, {
      attributes: { 'gen_ai.conversation.id': 'conv', 'gen_ai.usage.input_tokens': 20, 'svc.cost': 0.5 },
    })
    request(7, {}, [model(2), model(3), turn, spanOf(7, 5, { status: 'error', reason: 'X' })])
    expect(roots).to.have.length(1)
    expect(roots[0]).to.include({
      input: 20,
      output: 4,
      cost: 0.5,
      spans: 5,
      errors: 1,
      conversation: 'conv',
      status: 'unset',
      end: 2_000,
    })
    expect(roots[0]!.models).to.deep.equal(['m'])
    expect(stored.get(keyOf(hex(7, 32), hex(1, 16)))).to.have.length(5)
  })

  it('keeps roots without spans only if they failed, a limited number, and counts the others', () => {
    const { collector, roots, stored, clock } = open()
    const alone = (trace: number, more: Partial<Span> = {}) =>
      collector.take([spanOf(trace, 1, { isRoot: true, isSampled: false, ...more })])
    for (let at = 0; at < 1_000; at++) alone(at)
    expect(roots).to.deep.equal([])
    for (let at = 0; at < 1_000; at++) alone(2_000 + at, { status: 'error', reason: 'X' })
    expect(roots).to.have.length(200)
    clock.now += 1_000
    for (let at = 0; at < 1_000; at++) alone(4_000 + at, { status: 'error', reason: 'X' })
    expect(roots).to.have.length(220)
    expect(stored.size).to.equal(220)
    expect(collector.counts()).to.deep.equal({ kept: 220, skipped: 2_780, dropped: 0 })
  })

  it('separates principals that use the same trace', () => {
    const { collector, stored } = open()
    const [anna, ben] = [spanOf(7, 1, { isRoot: true }), spanOf(7, 2, { isRoot: true, principal: 'ben' })]
    const inner = [spanOf(7, 3), spanOf(7, 4, { principal: 'ben' }), spanOf(7, 5)]
    collector.take([begunOf(anna), begunOf(ben), ...inner, anna, ben])
    const ids = (span: Span) => stored.get(keyOf(span.traceId, span.spanId))!.map(({ s }) => Number.parseInt(s, 16))
    expect(ids(anna)).to.deep.equal([3, 5, 1])
    expect(ids(ben)).to.deep.equal([4, 2])
  })

  it('writes a long trace in parts, and shows that it runs', () => {
    const { collector, roots, stored, clock } = open()
    const root = spanOf(7, 1, { isRoot: true })
    collector.take([begunOf(root)])
    for (let id = 2; id < 1_502; id++) collector.take([spanOf(7, id)])
    const key = keyOf(root.traceId, root.spanId)
    expect(stored.get(key)).to.have.length(1_500)
    expect(roots.at(-1)).not.to.have.property('end')
    clock.now += 6_000
    collector.take([spanOf(7, 2_000)])
    collector.sweep()
    expect(stored.get(key)).to.have.length(1_501)
    collector.take([root])
    expect(roots.at(-1)).to.include({ end: 2_000, spans: 1_502 })
  })

  it('takes late spans of a kept trace for a moment, and drops those without a trace', () => {
    const { collector, stored, clock, request } = open()
    const { traceId, spanId } = request(7)
    collector.take([spanOf(7, 9)])
    clock.now += 3_000
    collector.sweep()
    expect(stored.get(keyOf(traceId, spanId))!.map(({ s }) => Number.parseInt(s, 16))).to.deep.equal([1, 9])
    collector.take([spanOf(7, 10), spanOf(8, 11)])
    collector.sweep()
    expect(collector.counts().dropped).to.equal(2)
  })

  it('holds a bounded number of spans and traces in memory', () => {
    const { collector, roots } = open()
    for (let trace = 0; trace < 100; trace++) {
      collector.take([begunOf(spanOf(trace, 1))])
      for (let id = 2; id < 402; id++) collector.take([spanOf(trace, id)])
    }
    expect(collector.counts().dropped).to.equal(100 * 400 - 20_000)
    for (let trace = 100; trace < 30_000; trace++) collector.take([begunOf(spanOf(trace, 1))])
    for (let trace = 100; trace < 30_000; trace++) collector.take([spanOf(trace, 1, { isRoot: true })])
    expect(roots.length).to.be.at.most(20_000)
  })

  it('shortens what plugins wrote, and content', () => {
    const { collector, stored, request } = open()
    const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`a${at}`, '\ud800'.repeat(10_000)]))
    const big = spanOf(7, 2, { name: 'n'.repeat(10_000), attributes })
    collector.content([{ traceId: big.traceId, spanId: big.spanId, principal: 'anna', content: { text: 'c'.repeat(200_000) } }])
    const { traceId, spanId } = request(7, {}, [big])
    const [span] = stored.get(keyOf(traceId, spanId))!
    expect(span!.n).to.have.length(200)
    expect(Object.keys(span!.x!)).to.have.length(64)
    expect(Object.values(span!.x!)[0]).to.have.length(4_000)
    expect(String(Object.values(span!.x!)[0]).isWellFormed()).to.equal(true)
    expect(span!.c!.text).to.have.length(64 * 1024)
  })
})
