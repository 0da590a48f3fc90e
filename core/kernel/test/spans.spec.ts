import {
  type CallContext,
  definePlugin,
  defineService,
  defineSlot,
  Host,
  type Series,
  type Span,
  type SpanContent,
} from '@svc/core'
import { testHost } from '@svc/testing'
import { expect } from 'chai'

interface Work {
  work(text: string, ctx: CallContext): Promise<string>
}
const Work = defineService<Work, { done: Series<string> }>('work', {
  api: 1,
  methods: { work: 'call' },
  hooks: { done: 'series' },
})
interface Item {
  call(text: string, ctx: CallContext): Promise<{ readonly isError?: boolean; readonly trace?: string }>
  run(text: string, ctx: CallContext): AsyncIterable<string>
}
const CONTENT = { argument: 'item.asked', answer: 'item.answered' }
const Items = defineSlot<Item>('items', {
  api: 1,
  methods: { call: 'call', run: 'stream' },
  traced: { span: 'use', attribute: 'item.name', methods: ['call', 'run'], failed: 'isError', content: CONTENT },
})

const worker = definePlugin({
  provides: Work,
  setup: scope => ({
    async work(text, ctx) {
      const span = scope.span('working', ctx, { attributes: { size: text.length } })
      span.content(() => ({ text }))
      span.event('begun')
      await scope.hooks.done(text, span.ctx)
      if (text === 'bad') span.fail(Object.assign(new Error('a secret'), { code: 'TOO_BAD' }))
      span.end()
      span.end()
      return span.ctx.trace ?? 'none'
    },
  }),
})
const slow = definePlugin({
  setup: scope => void scope.tap(Work.hooks.done, () => new Promise(resolve => setTimeout(resolve, 5))),
})
const fast = definePlugin({ setup: scope => void scope.tap(Work.hooks.done, () => undefined) })
const items = definePlugin({
  setup: scope =>
    void scope.add(Items, 'one', {
      call: async (text, { trace = 'none' }) => (text === 'bad' ? { isError: true } : { trace }),
      async *run(text) {
        yield text
        yield text
        if (text === 'bad') throw Object.assign(new Error('broken'), { code: 'BROKEN' })
      },
    }),
})

const PARENT = { trace: 'a'.repeat(32), span: 'b'.repeat(16) }
const ctx: CallContext = {
  signal: new AbortController().signal,
  principal: { id: 'anna', scopes: [] },
  requestId: 'mine',
  trace: `00-${PARENT.trace}-${PARENT.span}-01`,
}
/** Spans are reported every 20 ms. */
const settled = () => new Promise(resolve => setTimeout(resolve, 100))

async function open({ content = false, takes = true, accounting = true, perSecond = 1_000 } = {}) {
  const spans: Span[] = []
  const contents: SpanContent[] = []
  const taker = definePlugin({
    setup(scope) {
      if (takes) scope.tap(Host.hooks.spans, some => void spans.push(...some))
      if (content) scope.tap(Host.hooks.spanContents, some => void contents.push(...some))
    },
  })
  const host = await testHost(
    [worker, slow, fast, items, taker].map((use, at) => ({ name: `plugin-${at}`, use })),
    { config: { host: { accounting, traces_per_second: perSecond } } }
  )
  return { host, spans, contents }
}

describe('spans', () => {
  for (const accounting of [true, false])
    it(`name the trace of their caller, and their plugin, ${accounting ? 'with' : 'without'} accounting`, async () => {
      const { host, spans } = await open({ accounting })
      await using _host = host
      const trace = await host.service(Work).work('good', ctx)
      await settled()
      const working = spans.find(({ name }) => name === 'working')
      // the other tap takes next to no time, and makes a span only on a busy machine
      const tap = spans.find(({ name, plugin }) => name === 'tap work.done' && plugin === 'plugin-1')
      expect(working).to.include({ name: 'working', plugin: 'plugin-0', traceId: PARENT.trace, parentSpanId: PARENT.span })
      expect(working).to.include({ principal: 'anna', requestId: 'mine', status: 'unset', kind: 'internal' })
      expect(working).to.include({ isRoot: false })
      expect(working!.attributes).to.deep.equal({ size: 4 })
      expect(working!.events!.map(({ name }) => name)).to.deep.equal(['begun'])
      expect(trace).to.equal(`00-${PARENT.trace}-${working!.spanId}-01`)
      expect(tap).to.include({ parentSpanId: working!.spanId })
      expect(tap!.endMs! - tap!.startMs).to.be.within(3, 5_000)
      expect(working!.startMs).to.be.at.most(tap!.startMs)
      expect(working!.endMs).to.be.at.least(tap!.endMs!)
    })

  it('are roots without a trace, which are reported when they start and when they end', async () => {
    const { host, spans } = await open()
    await using _host = host
    const { trace: _trace, ...without } = ctx
    await host.service(Work).work('good', without)
    await settled()
    const [begun, ended] = spans.filter(({ name }) => name === 'working')
    expect(begun).to.include({ name: 'working', isRoot: true, endMs: undefined })
    expect(ended).to.include({ spanId: begun!.spanId, isRoot: true })
    expect(ended!.traceId).to.match(/^[\da-f]{32}$/)
    expect(ended!.endMs).to.be.a('number')
    expect(ended).to.include({ parentSpanId: undefined })
  })

  it('are not made without a tap, and the context stays as it is', async () => {
    const { host, spans } = await open({ takes: false })
    await using _host = host
    expect(await host.service(Work).work('good', ctx)).to.equal(ctx.trace)
    expect(await host.slot(Items).get('one')!.call('good', ctx)).to.deep.equal({ trace: ctx.trace })
    await settled()
    expect(spans).to.deep.equal([])
  })

  it('tell the code of an error, not its message', async () => {
    const { host, spans } = await open()
    await using _host = host
    await host.service(Work).work('bad', ctx)
    await settled()
    const span = spans.find(({ name }) => name === 'working')
    expect(span).to.include({ status: 'error', reason: 'TOO_BAD' })
    expect(span!.attributes).to.include({ 'error.type': 'TOO_BAD' })
    expect(JSON.stringify(spans)).not.to.include('a secret')
  })

  it('have content only for those who take it', async () => {
    const without = await open()
    await without.host.service(Work).work('what anna wrote', ctx)
    await settled()
    await without.host.close()
    expect(JSON.stringify(without.spans)).not.to.include('what anna wrote')
    const { host, spans, contents } = await open({ content: true })
    await using _host = host
    await host.service(Work).work('what anna wrote', ctx)
    await settled()
    const { spanId } = spans.find(({ name }) => name === 'working')!
    expect(contents).to.deep.equal([{ traceId: PARENT.trace, spanId, principal: 'anna', content: { text: 'what anna wrote' } }])
  })

  it('have argument and answer of the items of a slot that says so, or the last item of a stream', async () => {
    const { host, contents } = await open({ content: true })
    await using _host = host
    const one = host.slot(Items).get('one')!
    await one.call('bad', ctx)
    // a reader that leaves early has what it has read
    for await (const item of one.run('first', ctx)) if (item === 'first') break
    await settled()
    const of = (name: string) => contents.map(({ content }) => content[name]).filter(value => value !== undefined)
    expect(of('item.asked')).to.deep.equal(['bad', 'first'])
    expect(of('item.answered')).to.deep.equal([{ isError: true }, 'first'])
  })

  it('time the calls to items of a slot that says so, and their results', async () => {
    const { host, spans } = await open()
    await using _host = host
    const one = host.slot(Items).get('one')!
    const { trace } = await one.call('good', ctx)
    await one.call('bad', ctx)
    const read = async (text: string) => {
      for await (const _ of one.run(text, ctx)) continue
    }
    await read('good')
    await read('bad').catch(() => undefined)
    for await (const _ of one.run('left', ctx)) break
    one.run('never read', ctx)
    await settled()
    expect(
      spans.map(({ name, plugin, status, reason, attributes }) => [name, plugin, status, reason, attributes['item.name']])
    ).to.deep.equal([
      ['use one', 'plugin-3', 'unset', undefined, 'one'],
      ['use one', 'plugin-3', 'error', 'failed', 'one'],
      ['use one', 'plugin-3', 'unset', undefined, 'one'],
      ['use one', 'plugin-3', 'error', 'BROKEN', 'one'],
      ['use one', 'plugin-3', 'unset', undefined, 'one'],
    ])
    expect(trace).to.equal(`00-${PARENT.trace}-${spans[0]!.spanId}-01`)
  })

  it('leave out what is within a root, beyond the limit of traces per second', async () => {
    const { host, spans } = await open({ perSecond: 1 })
    await using _host = host
    const { trace: _trace, ...without } = ctx
    const made: string[] = []
    for (let at = 0; at < 30; at++) made.push(await host.service(Work).work('good', without))
    expect(made.slice(0, 10).every(trace => trace.endsWith('-01'))).to.equal(true)
    const out = made.filter(trace => trace.endsWith('-00'))
    expect(out).to.have.length.within(10, 20)
    await host.service(Work).work('good', { ...ctx, trace: out[0]! })
    await host
      .slot(Items)
      .get('one')!
      .call('good', { ...ctx, trace: out[0]! })
    await settled()
    const left = spans.filter(({ traceId }) => out.some(trace => trace.includes(traceId)))
    expect(left.every(({ isRoot, isSampled, endMs }) => isRoot && !isSampled && endMs !== undefined)).to.equal(true)
    expect(left).to.have.length(out.length)
  })

  it('ignore a trace that is not valid', async () => {
    const { host, spans } = await open()
    await using _host = host
    await host.service(Work).work('good', { ...ctx, trace: `00-${'g'.repeat(32)}-${PARENT.span}-01` })
    await settled()
    expect(spans[0]).to.include({ isRoot: true })
    expect(spans[0]!.traceId).not.to.include('g')
  })
})
