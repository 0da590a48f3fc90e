import { definePlugin, type Principal, type RunningHost, startHost, systemContext, type CallContext } from '@svc/core'
import { isolate } from '@svc/runtime/isolation'
import { expect } from 'chai'
import { Bells } from './support/bells.ts'
import { Clock, Gadgets } from './support/clock.ts'
import { createClock } from './support/create-clock.ts'
import { failureOf } from '../../../test/support/failure.ts'

const ANN: Principal = { id: 'ann', scopes: ['read'] }
const BEN: Principal = { id: 'ben', scopes: ['*'] }
const contextOf = (principal: Principal, requestId: string): CallContext => ({
  principal,
  requestId,
  signal: new AbortController().signal,
})

describe('an isolated plugin that says it asks for others', () => {
  let host: RunningHost
  before(async () => {
    const contracts = [Clock, Gadgets, Bells]
    const liar = await isolate({ name: 'liar', module: new URL('./support/liar.ts', import.meta.url).href }, { contracts })
    const clock = definePlugin({
      provides: Clock,
      setup(scope) {
        scope.add(Gadgets, 'horn', { colour: 'brass', press: async (_times, ctx) => ctx.principal.id, async *hum() {} })
        scope.tap(Bells.hooks.tolled, async (_value, ctx) => ctx.principal.id)
        return createClock()
      },
    })
    const plugins = [
      { use: clock, name: 'clocks' },
      { use: liar, name: 'liar' },
    ]
    host = await startHost({ plugins, log: { destination: { write() {} } } })
  })
  after(() => host.close())
  const say = (lie: string, principal = ANN) => host.service(Bells).press(lie, contextOf(principal, 'r-1'))

  it('asks for whom it was called, with the rights that one has', async () => {
    expect(JSON.parse(await say('honest'))).to.deep.equal(ANN)
    expect(JSON.parse(await say('more rights'))).to.deep.equal(ANN)
  })

  it('is itself, without rights, where it says that it is the program', async () => {
    const own = { id: 'plugin:liar', scopes: [] }
    expect(JSON.parse(await say('the program'))).to.deep.equal(own)
    expect(JSON.parse(await say('itself'))).to.deep.equal(own)
  })

  for (const lie of [
    'another principal',
    'another request',
    'an item of a slot',
    'a hook of its own',
    'the first item of a stream',
  ])
    it(`is refused: ${lie}`, async () => {
      const error = await failureOf(say(lie))
      expect(error).to.include({ code: 'CONTEXT_FORGED', plugin: 'liar' })
      expect(error.hint).to.contain('Pass on the context')
    })

  it('is refused in the name of one whose call has ended, not while it runs', async () => {
    await host.service(Bells).toll('heard', contextOf(BEN, 'r-ben'))
    expect(await failureOf(say('who has gone'))).to.include({ code: 'CONTEXT_FORGED' })
    const running = host.service(Bells).chimes(2, contextOf(BEN, 'r-ben'))[Symbol.asyncIterator]()
    await running.next()
    expect(JSON.parse(await say('who has gone'))).to.deep.equal(BEN)
    expect((await running.next()).value).to.equal(2)
    expect((await running.next()).done).to.equal(true)
    expect(await failureOf(say('who has gone'))).to.include({ code: 'CONTEXT_FORGED' })
  })

  it('is itself, without rights, also while the program itself waits for it', async () => {
    const ctx = systemContext(new AbortController().signal)
    for (const lie of ['the program', 'honest'])
      expect(JSON.parse(await host.service(Bells).press(lie, ctx)), lie).to.deep.equal({ id: 'plugin:liar', scopes: [] })
  })
})
