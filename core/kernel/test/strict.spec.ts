import { AsyncLocalStorage } from 'node:async_hooks'
import { defineService, defineSlot, definePlugin, type Series, type CallContext, type Waterfall } from '@svc/core'
import { item, service, testHost } from '@svc/testing'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { entry, ctx } from './support/kernel.ts'

type Anything = { [key: string]: unknown }
interface Far {
  call(value: unknown, ctx: CallContext): Promise<unknown>
  stream(value: unknown, ctx: CallContext): AsyncIterable<unknown>
}
interface FarHooks {
  change: Waterfall<Anything>
  look: Series<Anything>
}
const Far = defineService<Far, FarHooks>('far', {
  api: 1,
  methods: { call: 'call', stream: 'stream' },
  hooks: { change: 'waterfall', look: 'series' },
})
interface Thing {
  readonly label: unknown
  go(value: unknown, ctx: CallContext): Promise<unknown>
}
const Things = defineSlot<Thing>('things', { api: 1, methods: { go: 'call' } })

const echo: Far = {
  call: async value => value,
  async *stream(value) {
    yield value
  },
}
const open = (far: Partial<Far>) => testHost([], { give: [service(Far, { ...echo, ...far })] })
const read = async (stream: AsyncIterable<unknown>) => {
  const items: unknown[] = []
  for await (const current of stream) items.push(current)
  return items
}
/** What a call of the cheating implementation fails with. */
async function caught(far: Partial<Far>, call: (far: Far) => unknown = element => element.call({ list: [1] }, ctx)) {
  await using host = await open(far)
  return await failureOf((async () => call(host.service(Far)))())
}

describe('a strict host names who cheats:', () => {
  it('a method that answers with no promise, and a stream that is none', async () => {
    const call = await caught({ call: (() => 5) as never })
    expect(call).to.include({
      code: 'NOT_OF_KIND',
      plugin: 'test:far',
      where: 'far.call',
      message: 'far.call must answer with a Promise',
    })
    const stream = await caught({ stream: (async () => 5) as never }, far => read(far.stream(1, ctx)))
    expect(stream).to.include({ code: 'NOT_OF_KIND', plugin: 'test:far', where: 'far.stream' })
    expect(stream.hint).to.include('AsyncIterable')
  })

  const UNPLAIN: [string, unknown, string][] = [
    ['a function', { tools: [{ b: () => {} }] }, 'tools[0].b is a function'],
    ['a Map', { m: new Map() }, 'm is a Map'],
    ['a URL', { u: new URL('http://a') }, 'u is an URL'],
    ['a Buffer', { b: Buffer.from('x') }, 'b is a Buffer'],
    ['an instance', { e: new Error('x') }, 'e is an Error'],
    ['a symbol', { s: Symbol('x') }, 's is a symbol'],
  ]
  for (const [what, value, place] of UNPLAIN)
    it(`${what} as argument, result and item`, async () => {
      const sent = await caught({}, far => far.call(value, ctx))
      expect(sent).to.include({ code: 'NOT_PLAIN', message: `far.call.args[0].${place}` })
      const answered = await caught({ call: async () => value })
      expect(answered).to.include({ code: 'NOT_PLAIN', plugin: 'test:far', message: `far.call.result.${place}` })
      expect(answered.where).to.equal(`far.call.result.${place.split(' ')[0]}`)
      const yielded = await caught(
        {
          async *stream() {
            yield value
          },
        },
        far => read(far.stream(1, ctx))
      )
      expect(yielded).to.include({ code: 'NOT_PLAIN', plugin: 'test:far', message: `far.stream.item.${place}` })
      expect(yielded.hint).to.include('Uint8Array')
    })

  it('progress by callback', async () => {
    const error = await caught({}, far => far.call({ onProgress: () => {} }, ctx))
    expect(error.message).to.equal('far.call.args[0].onProgress is a function')
    expect(error.hint).to.include('yield items of a stream')
  })

  it('a call without a context, or with more in it than crosses', async () => {
    const error = await caught({}, far => (far.call as (value: unknown) => unknown)(1))
    expect(error).to.include({ code: 'CONTEXT_MISSING', where: 'far.call', hint: 'Pass on the context that you received' })
    let seen: CallContext | undefined
    await using host = await open({ call: async (_value, given) => void (seen = given) })
    await host.service(Far).call(1, { ...ctx, log: () => {} } as CallContext)
    expect(seen).to.have.all.keys('signal', 'principal', 'requestId')
    expect(seen?.principal).to.deep.equal(ctx.principal)
    expect(seen?.principal).to.not.equal(ctx.principal)
  })

  it('what travels by AsyncLocalStorage', async () => {
    const current = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    await using host = await open({
      call: async () => seen.push(current.getStore()),
      async *stream() {
        yield seen.push(current.getStore())
      },
    })
    await current.run('me', async () => {
      await host.service(Far).call(1, ctx)
      await read(host.service(Far).stream(1, ctx))
    })
    expect(seen).to.deep.equal([undefined, undefined])
  })

  it('who changes an argument, in a method, in a tap, and in what it got back', async () => {
    const far = await caught({ call: async value => (value as { list: number[] }).list.push(2) })
    expect(far).to.include({ code: 'ARGUMENT_CHANGED', plugin: 'test:far', where: 'far.call' })
    expect(far.message).to.match(/^far\.call must not change its arguments, which are frozen: Cannot add property 1/)
    expect(far.hint).to.include('a waterfall returns a new value')
    const plugin = definePlugin({ setup: scope => void scope.tap(Far.hooks.change, value => Object.assign(value, { a: 1 })) })
    const owner = definePlugin({
      provides: Far,
      setup: scope => ({ ...echo, call: (value, ctx) => scope.hooks.change(value as Anything, ctx) }),
    })
    await using host = await testHost([entry('owner', owner), entry('tapper', plugin)])
    expect(await failureOf(host.service(Far).call({}, ctx))).to.include({
      code: 'ARGUMENT_CHANGED',
      plugin: 'tapper',
      where: 'far.change',
    })
    await using other = await open({})
    const back = (await other.service(Far).call({ list: [1] }, ctx)) as { list: number[] }
    expect(() => back.list.push(2)).to.throw(TypeError)
  })

  it('who tells errors by class', async () => {
    class Mine extends Error {}
    const error = await caught({
      call: async () => {
        throw new Mine('boom')
      },
    })
    expect(error).to.not.be.instanceOf(Mine)
    expect(error).to.include({ code: 'INTERNAL_ERROR', message: 'boom' })
    const details = await caught({
      call: async () => {
        throw Object.assign(new Mine('boom'), { code: 'X', details: { f: () => {} } })
      },
    })
    expect(details).to.include({ code: 'NOT_PLAIN', message: 'far.call.error.details.f is a function' })
  })

  it('a stream that its reader cannot leave', async () => {
    const endless = { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false as const, value: 1 }) }) }
    const error = await caught({ stream: () => endless }, far => read(far.stream(1, ctx)))
    expect(error).to.include({ code: 'NOT_OF_KIND', plugin: 'test:far', where: 'far.stream' })
    expect(error.message).to.include('return()')
  })

  it('a contribution whose data is not plain', async () => {
    const thing: Thing = { label: { f: () => {} }, go: async () => 1 }
    const error = await failureOf(testHost([], { give: [item(Things, 'one', thing)] }))
    expect(error.message).to.include('things.one.label.f is a function')
  })

  it('a tap whose answer is not plain', async () => {
    const owner = definePlugin({
      provides: Far,
      setup: scope => ({ ...echo, call: (value, ctx) => scope.hooks.change(value as Anything, ctx) }),
    })
    const tapper = definePlugin({ setup: scope => void scope.tap(Far.hooks.change, () => ({ when: new Map() })) })
    await using host = await testHost([entry('owner', owner), entry('tapper', tapper)])
    const error = await failureOf(host.service(Far).call({}, ctx))
    expect(error).to.include({ code: 'NOT_PLAIN', plugin: 'tapper', message: 'far.change.answer.when is a Map' })
  })
})

describe('a strict host lets honest ones through:', () => {
  it('plain values, as copies that are not shared', async () => {
    await using host = await open({})
    const value = { a: [1, undefined, null, 'ä'], big: 2n ** 70n, at: new Date(5), bytes: new Uint8Array([1, 2]) }
    const back = await host.service(Far).call(value, ctx)
    expect(back).to.deep.equal(value)
    expect(back).to.not.equal(value)
    expect(await read(host.service(Far).stream(value, ctx))).to.deep.equal([value])
  })

  it('the finally of a stream whose reader leaves', async () => {
    let ended = false
    await using host = await open({
      async *stream() {
        try {
          for (;;) yield 1
        } finally {
          ended = true
        }
      },
    })
    for await (const _one of host.service(Far).stream(1, ctx)) break
    expect(ended).to.equal(true)
  })

  it('a failure of a stream, with its code', async () => {
    const error = await caught(
      {
        async *stream() {
          yield 1
          throw Object.assign(new Error('full'), { code: 'FULL' })
        },
      },
      far => read(far.stream(1, ctx))
    )
    expect(error).to.include({ code: 'FULL', message: 'full' })
  })

  it('the signal of a call', async () => {
    const ending = new AbortController()
    await using host = await open({
      call: (_value, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    })
    const call = failureOf(host.service(Far).call(1, { ...ctx, signal: ending.signal }))
    ending.abort(Object.assign(new Error('left'), { code: 'GONE' }))
    expect(await call).to.include({ code: 'GONE' })
  })

  it('data of a contribution, fixed as it was when it was added', async () => {
    const thing = { label: { text: 'a' }, go: async (value: unknown) => value }
    await using host = await testHost([], { give: [item(Things, 'one', thing)] })
    thing.label.text = 'b'
    expect(host.slot(Things).get('one')?.label).to.deep.equal({ text: 'a' })
    expect(await host.slot(Things).get('one')?.go(5, ctx)).to.equal(5)
  })

  it('all of that only where it is asked for', async () => {
    await using host = await testHost([], { give: [service(Far, echo)], strict: false })
    const value = { f: () => {} }
    expect(await host.service(Far).call(value, ctx)).to.equal(value)
  })
})
