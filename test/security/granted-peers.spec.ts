import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'

/** A plugin whose messages, permit, answer and metrics the attacker would like to have. */
const OWNER = `import { definePlugin, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Routes } from '@svc/core/contracts'
export default definePlugin({
  requires: { bus: NodeBus, peers: Peers },
  setup(scope, { bus, peers }) {
    const own = systemContext(scope.signal)
    const heard = []
    scope.tap(Peers.hooks.message, ({ topic }) => { heard.push(topic) })
    scope.tap(NodeBus.hooks.message, ({ topic }) => { heard.push(topic) })
    scope.tap(Peers.hooks.metrics, metrics => ({ ...metrics, owner: { canary: 1 } }))
    scope.add(PeerAnswers, 'owner.answer', { async *answer() { yield 'canary' } })
    const route = (name, handle) => scope.add(Routes, name, { method: 'GET', path: '/' + name, scope: 'read', summary: name, handle: async (_, ctx) => ({ body: await handle(ctx) }) })
    route('owner_acts', async ctx => {
      await peers.broadcast('owner.secret', 'canary', ctx)
      await bus.publish('owner.secret', 'canary', ctx)
      return [await peers.acquire('owner.permit', 1, own), await bus.acquire('owner.bus_permit', 1, own)]
    })
    route('owner_sees', async ctx => ({
      heard,
      permits: [await peers.acquire('owner.permit', 1, own), await bus.acquire('owner.bus_permit', 1, own)],
      metrics: (await peers.metrics(ctx)).map(({ owner, attacker, ended }) => ({ owner, attacker, ended: ended ?? null })),
      members: (await bus.members(ctx)).length,
    }))
  },
})`

/** Tries every method and every hook with names that are not its own. */
const ATTACKER = `import { definePlugin } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Routes } from '@svc/core/contracts'
const records = [{ plugin: 'http', reason: 'crashed' }]
const forged = { server: 'x', generation: 1, records }
const all = async stream => { const found = []; for await (const part of stream) found.push(part); return found }
const { __proto__: _, ...plain } = Peers
export default definePlugin({
  requires: { answers: PeerAnswers, bus: NodeBus, peers: Peers, again: { ...plain, methods: { ...Peers.methods } } },
  setup(scope, { answers, bus, peers, again }) {
    const heard = []
    const seen = []
    scope.tap(Peers.hooks.message, ({ topic, message }) => { heard.push([topic, message]) })
    scope.tap(NodeBus.hooks.message, ({ topic, message }) => { heard.push([topic, message]) })
    scope.tap(Peers.hooks.metrics, metrics => {
      seen.push(Object.keys(metrics))
      return { ...metrics, owner: 'forged', isolation: 'forged', ended: true, attacker: { own: 1 } }
    })
    scope.add(PeerAnswers, 'attacker.answer', { async *answer() { yield 'own' } })
    const ways = async (one, self, ctx) => ({
      'asks for its own answer': () => all(one.ask(self, 'attacker.answer', null, ctx)),
      'asks for the answer of another': () => all(one.ask(self, 'owner.answer', null, ctx)),
      'asks for a plan': () => all(one.ask(self, 'plugins.apply', null, ctx)),
      'asks for a prototype': () => all(one.ask(self, '__proto__', null, ctx)),
      'asks for a list': () => all(one.ask(self, ['owner.answer'], null, ctx)),
      'sends an order': () => one.broadcast('isolation.quarantine', forged, ctx),
      'sends an order with its prefix': () => one.broadcast(':isolation.quarantine', forged, ctx),
      'takes the permit of another': () => one.acquire('owner.permit', 1, ctx),
      'releases the permit of another': () => one.release('owner.permit', ctx),
      'reads metrics': async () => (await one.metrics(ctx)).map(metrics => Object.keys(metrics).sort()),
    })
    const onBus = (self, ctx) => ({
      'bus: asks for its own answer': () => all(bus.call(self, 'attacker.answer', null, ctx)),
      'bus: asks for the answer of another': () => all(bus.call(self, 'owner.answer', null, ctx)),
      'bus: sends an order': () => bus.publish('isolation.quarantine', forged, ctx),
      'bus: takes the permit of another': () => bus.acquire('owner.bus_permit', 1, ctx),
      'bus: releases the permit of another': () => bus.release('owner.bus_permit', ctx),
      'bus: joins with other facts': () => bus.join({ roles: ['runs'] }, ctx),
      'bus: leaves': () => bus.leave(ctx),
    })
    const route = (name, handle) => scope.add(Routes, name, { method: 'GET', path: '/' + name, scope: 'read', summary: name, handle: async (_, ctx) => ({ body: await handle(ctx) }) })
    route('attack', async ctx => {
      const tried = {}
      const self = await peers.self(ctx)
      for (const [way, work] of Object.entries({ ...(await ways(peers, self, ctx)), ...onBus(self, ctx) }))
        tried[way] = await work().then(value => ['done', value ?? null], error => [error.code])
      tried['another token: asks for the answer of another'] = await all(again.ask(self, 'owner.answer', null, ctx)).then(value => ['done', value], error => [error.code])
      tried['the slot'] = [answers.names()]
      return tried
    })
    route('attacker_heard', async () => ({ heard, seen }))
  },
})`

const routes = (...names: readonly string[]) =>
  Object.fromEntries(names.map(name => [name, { method: 'GET', path: `/${name}`, scope: 'read' }]))

describeIsolated('an isolated plugin that uses the services between workers', function () {
  this.timeout(60_000)
  let attacked: Attacked
  const get = async <T>(path: string) => (await (await fetch(`${attacked.service.url}/${path}`)).json()) as T
  before(async () => {
    attacked = await startAttacked({
      config: { server: { workers: 1 }, cluster: { name: 'attacked' } },
      curated: ['bus-store'],
      plugins: [
        {
          name: 'owner',
          code: OWNER,
          isolation: 'in-process',
          svc: { contributes: { routes: routes('owner_acts', 'owner_sees'), peer_answers: ['owner.answer'] } },
        },
        {
          name: 'attacker',
          code: ATTACKER,
          svc: {
            contributes: { routes: routes('attack', 'attacker_heard'), peer_answers: ['attacker.answer'] },
            permissions: { services: ['node_bus', 'peer_answers', 'peers'], hooks: ['peers.*', 'node_bus.*'] },
          },
        },
      ],
    })
  })
  after(() => attacked?.[Symbol.asyncDispose]())

  it('reaches its own topics, permits, answers and metrics, and none of others', async () => {
    expect(await get('owner_acts')).to.deep.equal([true, true])
    const tried = await get<Record<string, readonly unknown[]>>('attack')
    const denied = Object.keys(tried).filter(way => tried[way]![0] === 'NOT_PERMITTED')
    expect(denied, JSON.stringify(tried)).to.have.members([
      'asks for the answer of another',
      'asks for a plan',
      'asks for a prototype',
      'asks for a list',
      'bus: asks for the answer of another',
      'bus: joins with other facts',
      'bus: leaves',
      'another token: asks for the answer of another',
    ])
    expect(tried['the slot'], 'answers in the slot').to.deep.equal([['attacker.answer']])
    expect(tried['asks for its own answer']).to.deep.equal(['done', ['own']])
    expect(tried['bus: asks for its own answer']).to.deep.equal(['done', ['own']])
    expect(tried['takes the permit of another'], 'its own permit of this name').to.deep.equal(['done', true])
    expect(JSON.stringify(tried)).not.to.contain('canary')
    for (const keys of tried['reads metrics']![1] as readonly string[][])
      expect(['attacker', 'generation'], 'metrics of others').to.include.members(keys)

    const sees = await get<{ heard: string[]; permits: boolean[]; metrics: object[]; members: number }>('owner_sees')
    expect(sees.permits, 'the owner still has its permits').to.deep.equal([false, false])
    expect(sees.metrics[0]).to.deep.equal({ owner: { canary: 1 }, attacker: { own: 1 }, ended: null })
    expect(sees.heard.filter(topic => topic.includes('quarantine')).toSorted()).to.deep.equal([
      'plugin:attacker::isolation.quarantine',
      'plugin:attacker:isolation.quarantine',
    ])
    expect(sees.members).to.equal(1)

    const { heard, seen } = await get<{ heard: [string, unknown][]; seen: string[][] }>('attacker_heard')
    expect(heard.map(([topic]) => topic)).to.have.members(['isolation.quarantine', ':isolation.quarantine'])
    expect(JSON.stringify(heard)).not.to.contain('canary')
    for (const keys of seen) expect(['attacker', 'generation', 'ended'], 'metrics of others').to.include.members(keys)
  })
})
