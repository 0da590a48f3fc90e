import { definePlugin, defineTopic, Events, type BusEvent } from '@svc/core'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'

const Rain = defineTopic<{ readonly mm: number }>('WEATHER', 'rain')
const Hail = defineTopic<{ readonly mm: number }>('WEATHER', 'hail')
const Call = defineTopic<{ readonly tool: string }>('TOOL', 'call')

const bus = async () => {
  const host = await testHost([])
  return { events: host.service(Events), [Symbol.asyncDispose]: () => host.close() }
}

/** A reader that reads already, and what it has read. */
async function reads(events: Events, filter: Parameters<Events['subscribe']>[0], signal = new AbortController().signal) {
  const reader = events.subscribe(filter, testContext({ signal }))[Symbol.asyncIterator]()
  const first = reader.next()
  // the subscription stands once its first `next` has run
  await new Promise(resolve => setImmediate(resolve))
  await new Promise(resolve => setImmediate(resolve))
  const next = async () => (await reader.next()).value as BusEvent
  return { first: first.then(({ value }) => value as BusEvent), next, leave: () => reader.return?.() }
}

describe('the event bus', () => {
  it('tells every reader what it asked for, with category, type, data and time', async () => {
    await using found = await bus()
    const weather = await reads(found.events, { categories: ['WEATHER'] })
    const hail = await reads(found.events, { types: ['hail'] })
    const all = await reads(found.events, {})
    const before = Date.now()
    await found.events.publish(Call, { tool: 't' }, testContext())
    await found.events.publish(Rain, { mm: 3 }, testContext())
    await found.events.publish(Hail, { mm: 1 }, testContext())
    const { timestamp, ...event } = await weather.first
    const { principal, requestId } = testContext()
    const by = { principal: principal.id, requestId }
    expect(event).to.deep.equal({ category: 'WEATHER', type: 'rain', data: { mm: 3 }, seq: 2, ...by, lost: 0 })
    expect(timestamp).to.be.within(before, Date.now())
    expect((await weather.next()).type).to.equal('hail')
    expect((await hail.first).type).to.equal('hail')
    expect([await all.first, await all.next(), await all.next()].map(({ type }) => type)).to.deep.equal(['call', 'rain', 'hail'])
  })

  it('waits for no reader: a reader that is too slow loses the oldest and gets their number', async () => {
    await using found = await bus()
    const slow = await reads(found.events, {})
    for (let mm = 0; mm < 1_501; mm++) await found.events.publish(Rain, { mm }, testContext())
    expect((await slow.first).data).to.deep.equal({ mm: 0 })
    const after = await slow.next()
    expect([after.data, after.lost]).to.deep.equal([{ mm: 501 }, 500])
    expect((await slow.next()).lost).to.equal(0)
  })

  it('is not hurt by a reader that throws, and forgets one that has left', async () => {
    await using found = await bus()
    const throwing = (async () => {
      for await (const _ of found.events.subscribe({}, testContext())) throw new Error('I cannot stand rain')
    })()
    const other = await reads(found.events, {})
    await found.events.publish(Rain, { mm: 1 }, testContext())
    expect(await throwing.catch((error: Error) => error.message)).to.equal('I cannot stand rain')
    await found.events.publish(Rain, { mm: 2 }, testContext())
    expect([(await other.first).data, (await other.next()).data]).to.deep.equal([{ mm: 1 }, { mm: 2 }])
    await other.leave()
    await found.events.publish(Rain, { mm: 3 }, testContext())
  })

  it('ends for a reader whose signal has aborted', async () => {
    await using found = await bus()
    const leaving = new AbortController()
    const reader = await reads(found.events, {}, leaving.signal)
    leaving.abort()
    expect(await reader.first).to.equal(undefined)
  })

  it('is a service that plugins ask for by token', async () => {
    const heard = Promise.withResolvers<object>()
    const listening = Promise.withResolvers<void>()
    const listener = definePlugin({
      requires: { events: Events },
      setup(scope, { events }) {
        void (async () => {
          const reader = events.subscribe({ types: ['rain'] }, testContext({ signal: scope.signal }))[Symbol.asyncIterator]()
          const first = reader.next()
          setImmediate(listening.resolve)
          heard.resolve(((await first).value as BusEvent).data)
          await reader.return?.()
        })()
      },
    })
    const teller = definePlugin({
      requires: { events: Events },
      async setup(_, { events }) {
        await listening.promise
        await events.publish(Rain, { mm: 7 }, testContext())
      },
    })
    await using _host = await testHost([], {
      give: [
        { name: 'test:listener', use: listener },
        { name: 'test:teller', use: teller },
      ],
    })
    expect(await heard.promise).to.deep.equal({ mm: 7 })
  })
})
