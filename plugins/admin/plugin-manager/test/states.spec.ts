import type { Host, HostReport, PluginReport } from '@svc/core'
import type { Peers, WorkerMetrics } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { createPluginStates, refusalsOf } from '../src/plugin-states.ts'

const report = (name: string, more: Partial<PluginReport> = {}): PluginReport => ({
  name,
  version: '1.0.0',
  kind: 'tool',
  state: 'running',
  isolation: 'process',
  optional: false,
  setupMs: 1,
  requires: [],
  added: {},
  permissions: {},
  ...more,
})

interface Seen {
  readonly plugins: readonly PluginReport[]
  readonly calls?: number
}

/** A worker that has this report; its calls are half of a hook, half of a tool. */
function worker({ plugins, calls = 0 }: Seen, peers?: Peers) {
  const half = { plugin: 'a', calls: calls / 2, errors: 1, ms: 2 }
  const hooks = [{ ...half, hook: 'chat.turn' }]
  const items = [{ ...half, slot: 'tools', method: 'call' }]
  const host: Host = { report: async () => ({ plugins, hooks, calls: items }) as unknown as HostReport }
  return createPluginStates(host, peers)
}

/** Peers that answer with these metrics; the other methods are not called. */
const peersWith = (...all: readonly WorkerMetrics[]) => ({ metrics: async () => all }) as unknown as Peers

describe('the states of plugins', () => {
  it('are sums over all workers, with the worst state of each instance', async () => {
    const ctx = testContext()
    const refusals = { network: 2 }
    const first = await worker({ plugins: [report('a', { refusals, restarts: 1, memoryBytes: 10 }), report('b')], calls: 4 }).own(
      {},
      ctx
    )
    const second = await worker({
      plugins: [
        report('a', { state: 'restarting', refusals: { network: 1, env: 1 }, memoryBytes: 5 }),
        report('b', { instance: 'x' }),
      ],
      calls: 6,
    }).own({}, ctx)
    const all = await worker({ plugins: [] }, peersWith(first, second)).read(ctx)
    expect(all.get('a')).to.deep.equal({
      calls: 10,
      errors: 4,
      ms: 8,
      refusals: {},
      restarts: {},
      instances: {
        '': { state: 'restarting', refusals: { network: 3, env: 1 }, restarts: 1, memory_bytes: 15, cpu_ms: 0 },
      },
    })
    expect(refusalsOf(all.get('a')!)).to.deep.equal({ network: 3, env: 1 })
    expect(Object.keys(all.get('b')!.instances)).to.deep.equal(['', 'x'])
  })

  it('keep what workers have counted that have ended, and nothing else of them', async () => {
    const ctx = testContext()
    const ended = await worker({
      plugins: [report('a', { state: 'quarantined', refusals: { read: 5 }, memoryBytes: 9 })],
      calls: 8,
    }).own({}, ctx)
    const successor = worker({ plugins: [report('a')], calls: 2 })
    successor.inherit({ ...ended, ended: true })
    const after = await worker({ plugins: [] }, peersWith(await successor.own({}, ctx))).read(ctx)
    expect(after.get('a')).to.deep.include({ calls: 10, refusals: { read: 5 } })
    expect(after.get('a')!.instances['']).to.include({ state: 'running', memory_bytes: 0 })
    // before a worker has inherited them, they are counted too
    const before = worker(
      { plugins: [] },
      peersWith(await worker({ plugins: [report('a')], calls: 2 }).own({}, ctx), { ...ended, ended: true })
    )
    const all = (await before.read(ctx)).get('a')!
    expect([all.calls, refusalsOf(all), all.instances['']!.state]).to.deep.equal([10, { read: 5 }, 'running'])
  })

  it('are those of this host alone without peers', async () => {
    const all = await worker({ plugins: [report('a', { state: 'failed' })], calls: 2 }).read(testContext())
    expect(all.get('a')!.instances['']).to.include({ state: 'failed' })
  })
})
