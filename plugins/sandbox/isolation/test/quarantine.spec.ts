import { systemContext } from '@svc/core'
import type { BusMember, Json } from '@svc/core/contracts'
import { expect } from 'chai'
import { createQuarantine, type Quarantine, TOPIC } from '../src/quarantine.ts'
import { recordsIn } from '../src/quarantine-records.ts'

const [PLUGIN, VERSION] = ['svc-plugin-tides', '1.0.0']
const DAY_MS = 24 * 3_600_000
const ctx = systemContext(new AbortController().signal)
const recordOf = (more: object = {}) => ({ plugin: PLUGIN, version: VERSION, quarantined: true, at: Date.now(), ...more })

interface Node {
  readonly quarantine: Quarantine
  readonly member: BusMember
  /** Whether the plugin is out, each time that this changes. */
  readonly seen: boolean[]
  isCut: boolean
}

/** Workers of servers of their own on one bus, which a test can cut off. */
function openCluster() {
  const nodes: Node[] = []
  const open = ({ version = VERSION, generation = 1 } = {}): Node => {
    const name = `node-${nodes.length}`
    const reached = () => nodes.filter(other => !other.isCut && !node.isCut && other !== node)
    const quarantine = createQuarantine({
      peers: {
        async broadcast(topic, message, using) {
          await Promise.all([node, ...reached()].map(to => to.quarantine.onMessage(topic, structuredClone(message), using)))
        },
        metrics: async () => [{ generation }],
        async *ask(worker, _topic, message, using) {
          const found = reached().find(({ member }) => member.worker === worker)
          if (found) yield* found.quarantine.answer.answer(message, using)
        },
      },
      bus: { members: async () => [node, ...reached()].map(({ member }) => member) },
      events: { publish: async () => {} },
      report: async () => ({ plugins: [{ name: PLUGIN, version } as never], serverId: name, nodeId: name, state: 'running' }),
      log: { debug() {}, info() {}, warn() {}, error() {} } as never,
    })
    const node: Node = { quarantine, member: { worker: `${name}.1`, node: name, facts: null }, seen: [], isCut: false }
    nodes.push(node)
    void (async () => {
      for await (const isOut of quarantine.watch({ plugin: PLUGIN }, ctx)) node.seen.push(isOut)
    })()
    return node
  }
  return { open, joined: (node: Node) => node.quarantine.joined(ctx), tick: () => new Promise(setImmediate) }
}

/** A node whose worker an operator's reload has started. */
async function reload(cluster: ReturnType<typeof openCluster>, node: Node): Promise<void> {
  await node.quarantine.onMessage(TOPIC, 'reloaded', ctx)
  await cluster.joined(node)
}

describe('the quarantine of a plugin in a cluster', () => {
  it('holds for its version on all nodes, and on those that join later', async () => {
    const cluster = openCluster()
    const [one, two, other] = [cluster.open(), cluster.open(), cluster.open({ version: '1.0.1' })]
    for (const node of [one, two, other]) await cluster.joined(node)
    await one.quarantine.put({ plugin: PLUGIN }, ctx)
    const late = cluster.open()
    await cluster.joined(late)
    await cluster.tick()
    expect([one, two, late, other].map(({ seen }) => seen)).to.deep.equal([[true], [true], [true], []])
  })

  it('ends on all nodes with the reload of one', async () => {
    const cluster = openCluster()
    const [one, two] = [cluster.open(), cluster.open()]
    for (const node of [one, two]) await cluster.joined(node)
    await one.quarantine.put({ plugin: PLUGIN }, ctx)
    const fresh = cluster.open({ generation: 2 })
    // the others ask it before it asks them
    await one.quarantine.met(fresh.member, ctx)
    await cluster.tick()
    await reload(cluster, fresh)
    await cluster.tick()
    expect([one, two, fresh].map(({ seen }) => seen)).to.deep.equal([[true, false], [true, false], []])
    await fresh.quarantine.put({ plugin: PLUGIN }, ctx)
    await cluster.tick()
    expect(two.seen).to.deep.equal([true, false, true])
  })

  it('reaches a node that was cut off, and a release that it has missed is not undone by its return', async () => {
    const cluster = openCluster()
    const [one, two] = [cluster.open(), cluster.open()]
    for (const node of [one, two]) await cluster.joined(node)
    await one.quarantine.put({ plugin: PLUGIN }, ctx)
    two.isCut = true
    await reload(cluster, cluster.open({ generation: 2 }))
    two.isCut = false
    // the others see it return, and it does not see them
    await one.quarantine.met(two.member, ctx)
    await cluster.tick()
    expect([one.seen, two.seen]).to.deep.equal([
      [true, false],
      [true, false],
    ])
  })

  it('takes nothing from a message but valid records', async () => {
    const cluster = openCluster()
    const [one, two] = [cluster.open(), cluster.open()]
    for (const node of [one, two]) await cluster.joined(node)
    const hostile: Json[] = [
      null,
      'released',
      'reloaded',
      7,
      [],
      [null, 'x', [PLUGIN], { plugin: PLUGIN.repeat(100) }, { plugin: 7 }],
      { records: 'all' },
      { server: 'x', generation: 'y', records: { length: 9e15 } },
      ...[
        { plugin: '' },
        { plugin: { toString: 'x' } },
        { version: 1 },
        { version: 'v'.repeat(101) },
        { quarantined: 'yes' },
        { quarantined: 1 },
        { instance: 7 },
        { instance: '' },
        { at: -1 },
        { at: 0.5 },
        { at: '1' },
        { at: Number.MAX_SAFE_INTEGER },
        { at: Date.now() + 2 * DAY_MS },
      ].map(more => ({ server: 'x', generation: 1, records: [recordOf(more as object) as unknown as Json] })),
    ]
    for (const message of hostile) {
      await two.quarantine.onMessage(TOPIC, message, ctx)
      for await (const _ of two.quarantine.answer.answer(message, ctx));
    }
    const blamed = { plugin: PLUGIN, at: Number.MAX_SAFE_INTEGER }
    await two.quarantine.onMessage(TOPIC, [blamed], ctx)
    await two.quarantine.onMessage('another.topic', { server: 'x', generation: 1, records: [recordOf()] as Json }, ctx)
    await cluster.tick()
    expect([two.quarantine.records(), two.seen]).to.deep.equal([[], []])
    const polluted = JSON.parse(`[{"__proto__": {"quarantined": true}, "constructor": 1, "extra": "x", "plugin": "p",
      "version": "1", "quarantined": false, "at": 1}]`) as unknown
    expect(recordsIn(polluted)).to.deep.equal([{ plugin: 'p', version: '1', quarantined: false, at: 1 }])
  })

  it('is not changed by an old message, which comes once more', async () => {
    const cluster = openCluster()
    const one = cluster.open()
    await cluster.joined(one)
    const old = { server: 'x', generation: 1, records: [recordOf({ at: 1_000 })] }
    const released = { server: 'x', generation: 1, records: [recordOf({ at: 2_000, quarantined: false })] }
    for (const message of [old, released, old, released, old]) {
      await one.quarantine.onMessage(TOPIC, message, ctx)
      await cluster.tick()
    }
    expect(one.seen).to.deep.equal([true, false])
  })

  it('keeps a bounded number of records, and sends them in messages that the bus takes', async () => {
    const cluster = openCluster()
    const one = cluster.open()
    await cluster.joined(one)
    for (let at = 0; at < 30; at++) {
      const records = Array.from({ length: 100 }, (_, n) =>
        recordOf({
          plugin: `${at}-${n}-`.padEnd(214, '\u{1f600}'),
          instance: '\u{1f600}'.repeat(100),
          version: '\u0001'.repeat(100),
        })
      )
      await one.quarantine.onMessage(TOPIC, { server: 'x', generation: 1, records }, ctx)
    }
    let count = 0
    for await (const part of one.quarantine.answer.answer(null, ctx)) {
      expect(Buffer.byteLength(JSON.stringify(part))).to.be.below(64 * 1024)
      count += (part as Json[]).length
    }
    expect(count).to.equal(200)
  })

  it('is not passed on to workers of another generation of the same server', async () => {
    const cluster = openCluster()
    const one = cluster.open({ generation: 2 })
    await cluster.joined(one)
    for (const generation of [1, 3])
      await one.quarantine.onMessage(TOPIC, { server: 'node-0', generation, records: [recordOf()] }, ctx)
    await cluster.tick()
    expect(one.seen).to.deep.equal([])
    await one.quarantine.onMessage(TOPIC, { server: 'node-0', generation: 2, records: [recordOf()] }, ctx)
    await cluster.tick()
    expect(one.seen).to.deep.equal([true])
  })
})
