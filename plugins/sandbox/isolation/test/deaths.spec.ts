import { systemContext } from '@svc/core'
import { Checks, MetricSources, PeerAnswers, Tools } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { openWorkerPeers } from './support/worker-peers.ts'
import { Gong } from './support/hostile/gong.ts'
import { failed, type Hostile, openHostile, withSandbox } from './support/hostile.ts'
import { itWith } from '../../../../test/support/needs.ts'

const ctx = systemContext(new AbortController().signal)
const healthOf = async ({ host }: Hostile) => host.slot(Checks).get('plugins')!.probe(ctx)
/** What `/metrics` says of it, by the end of the name. */
async function valuesOf({ host }: Hostile): Promise<(name: string, kind?: string) => number | undefined> {
  const families = await host.slot(MetricSources).get('isolation')!.read(ctx)
  return (name, kind) => {
    const { values = [] } = families.find(family => family.name === `svc_plugin_${name}`) ?? {}
    return values.find(({ labels }) => labels.kind === kind)?.value
  }
}

/** A host for several cases; deaths in a row wait ever longer, so there are some of these. */
function shared(
  memory = '128M',
  hangs = 2
): { readonly one: Hostile; dies(what: string, given: string, how: RegExp): Promise<void> } {
  const held = {} as { one: Hostile }
  before(async () => {
    held.one = await openHostile({ config: { isolation: { hang_timeout: hangs, restarts: 100, memory } } })
  })
  after(() => held.one?.[Symbol.asyncDispose]())
  return {
    get one() {
      return held.one
    },
    /** It dies of something: the log tells how it ended, and it is back. */
    async dies(what, given, how) {
      const { one: found } = held
      const before = found.report().restarts!
      const from = found.lines.length
      const call = await failed(found.attack(what, given)).catch(() => 'PLUGIN_GONE')
      expect(call).to.match(/PLUGIN_GONE/)
      while (found.report().restarts === before) await wait(5)
      await found.back()
      expect(await found.attack('nothing')).to.equal('nothing')
      expect(found.lines.slice(from).join('')).to.match(how)
    },
  }
}

withSandbox('an isolated plugin, of which only its own calls fail and which comes back, when it', () => {
  const box = shared()
  it('takes too much memory', () => box.dies('memory', '', /it exceeded its memory limit \(134217728 bytes\)/))
  it('loops without an end', () => box.dies('loop', '', /it hangs: no response for 2000 ms/))
  it('ends itself', () => box.dies('exit', '7', /code 7/))
  it('dies a third time: it waits longer each time before it is brought up', () => {
    const waits = box.one.lines.flatMap(line => (JSON.parse(line) as { delayMs?: number }).delayMs ?? [])
    expect(waits).to.deep.equal([0, 200, 400])
  })
})

withSandbox('an isolated plugin, which comes back when it', () => {
  const box = shared()
  it('has an uncaught exception', () => box.dies('crash', '', /Error: crashed/))
  it('has an unhandled rejection', () => box.dies('reject', '', /Error: rejected/))
  it('announces a message of four gigabytes', () =>
    box.dies('frame', '', /a message of 4294967295 bytes exceeds the maximum of 16777216/))
})

withSandbox('an isolated plugin that misbehaves', () => {
  const box = shared('256M', 30)

  it('answers more than a message may hold: that call fails, and the next is answered', async () => {
    expect(await failed(box.one.attack('large', String(17 * 1024 * 1024)))).to.match(/FRAME_TOO_LARGE/)
    expect(await box.one.attack('nothing')).to.equal('nothing')
    expect(box.one.report().restarts).to.equal(0)
  })

  it('never answers a hook: the caller gets an error, and the host goes on', async () => {
    expect(await failed(box.one.host.service(Gong).strike(testContext()))).to.match(/TAP_TIMEOUT/)
    expect(await box.one.attack('nothing')).to.equal('nothing')
  })

  it('streams faster than it is read: it waits, with no more than a window of items under way', async () => {
    const yielded = async () => Number(await box.one.attack('yielded'))
    const read: unknown[] = []
    const stream = box.one.host.slot(PeerAnswers).get('flood')!.answer(null, testContext())
    for await (const item of stream) {
      read.push(item)
      if (read.length < 500) continue
      // what it could do without waiting it has done by the second answer
      await yielded()
      expect(await yielded()).to.be.within(500, 500 + 2 * 64)
      break
    }
    expect(read).to.deep.equal(Array.from({ length: 500 }, (_, at) => at + 1))
    const ended = await yielded()
    expect(await yielded()).to.equal(ended)
  })

  it('taps a hook again and again, or adds without end: it is refused, and what was there stays', async () => {
    const cases: [string, string][] = [
      ['taps', 'at most 4 taps on one hook'],
      ['long name', 'at most 300 characters in a name'],
      ['large tools', 'at most 16 MiB of contributions'],
      ['tools', 'at most 1000 contributions'],
    ]
    for (const [what, words] of cases) {
      await box.one.attack(what)
      await box.one.until(words)
    }
    expect(await box.one.attack('nothing')).to.equal('nothing')
  })

  it('writes facts that the log says itself, or long ones: they stand apart, and are cut', async () => {
    await box.one.attack('forge')
    await box.one.until('forged')
    const line = JSON.parse(box.one.lines.find(item => item.includes('forged'))!)
    expect(line).to.include({ plugin: 'svc-plugin-hostile', level: 30, msg: 'forged' })
    expect(line.said).to.include({ plugin: '@svc/plugin-http', level: 60, msg: 'all is well', cut: true })
    expect(line.said.text.length).to.be.below(1000)
  })

  it('writes more lines than may be: they are left out and counted', async () => {
    for (const what of ['print', 'log']) {
      const from = box.one.lines.length
      await box.one.attack(what, '5000')
      await box.one.until('an isolated plugin wrote too much: lines were dropped')
      expect(box.one.lines.length - from, what).to.be.below(400)
    }
  })

  it('reaches for more names than are logged: further ones are only counted', async () => {
    const from = box.one.lines.length
    await box.one.attack('touch', '400')
    await box.one.until('svc blocked more than 100 different accesses')
    expect(box.one.lines.slice(from).filter(line => line.includes('tried to')).length).to.be.below(101)
    while ((box.one.report().refusals?.env ?? 0) < 400) await wait(5)
  })

  it('is in the figures: processor, memory, refusals', async () => {
    while (!(box.one.report().memoryBytes! > 0)) await wait(5)
    const value = await valuesOf(box.one)
    expect(['up', 'quarantined', 'restarts_total'].map(name => value(name))).to.deep.equal([1, 0, 0])
    expect(value('memory_bytes')).to.be.above(1_000_000)
    expect(value('cpu_seconds_total')).to.be.above(0)
    expect(value('refusals_total', 'env')).to.be.above(399)
  })
})

withSandbox('an isolated plugin that dies again and again', () => {
  const openPeers = openWorkerPeers()
  const workers: Hostile[] = []
  const open = async (generation: number) => {
    const isolation = { plugins: { 'svc-plugin-hostile': { restarts: 1 } } }
    const hostile = await openHostile({ config: { isolation }, beside: [openPeers(generation)] })
    workers.push(hostile)
    return hostile
  }
  after(() => Promise.all(workers.map(worker => worker[Symbol.asyncDispose]())))
  const OUT = { status: 'degraded', reason: 'svc-plugin-hostile is quarantined' }

  it('is quarantined: what it added is gone, /health says so, and the figures', async () => {
    const [first] = [await open(1), await open(1)]
    expect((await healthOf(first)).status).to.equal('healthy')
    await failed(first.attack('exit', '1'))
    while (first.report().restarts === 0) await wait(5)
    await first.back()
    const attack = first.host.slot(Tools).get('attack')!
    await failed(first.attack('exit', '1'))
    await first.until('too often')
    expect(first.report()).to.include({ state: 'quarantined', restarts: 1 })
    expect(first.host.slot(Tools).has('attack')).to.equal(false)
    expect(await failed(attack.call({ what: 'nothing' }, testContext()))).to.match(/PLUGIN_GONE/)
    expect(await healthOf(first)).to.include(OUT)
    const value = await valuesOf(first)
    expect(['up', 'quarantined', 'restarts_total'].map(name => value(name))).to.deep.equal([0, 1, 1])
  })

  it('is so in all workers of its server, those that come later too, and not after a reload', async () => {
    const [first, other] = [workers[0]!, workers[1]!, await open(1)]
    const fresh = await open(2)
    for (const worker of workers.slice(1, 3)) {
      await worker.until('too often')
      expect(worker.report()).to.include({ state: 'quarantined', restarts: 0 })
      expect(await healthOf(worker)).to.include(OUT)
      expect(worker.host.slot(Tools).has('attack')).to.equal(false)
    }
    expect(other.lines.find(line => line.includes('too often'))).to.include('in another worker')
    expect(await first.host.slot(Checks).get('plugins')!.status!(ctx)).to.deep.include({
      detail: { 'svc-plugin-hostile': { state: 'quarantined', restarts: 1 } },
    })
    expect(await fresh.attack('nothing')).to.equal('nothing')
    expect((await healthOf(fresh)).status).to.equal('healthy')
  })

  it('fails the start where its setup ends or hangs, and says how', async () => {
    for (const [setup, how] of [
      ['exit', /code 3/],
      ['loop', /it hangs/],
      ['never', /SETUP_TIMEOUT/],
    ] as const) {
      const host = { setup_timeout_ms: setup === 'never' ? 1500 : 15_000, tap_timeout_ms: 300 }
      const config = { hostile: { setup, with: '3' }, isolation: { hang_timeout: setup === 'loop' ? 1 : 10 }, host }
      expect(await failed(openHostile({ config }))).to.match(how)
    }
  })
})

describe('without a sandbox', () => {
  const policy = [new URL('../', import.meta.url)]

  it('an isolated plugin is refused with what would fix that', async () => {
    const error = await failed(openHostile({ policy }))
    expect(error).to.match(/cannot run in an isolated process/)
    expect(error).to.include('run-with-open-network-and-unlimited-memory')
  })

  itWith('bubblewrap', it)(
    'runs behind the permission model of Node alone where the configuration says so in words',
    async () => {
      const config = { isolation: { without_sandbox: 'run-with-open-network-and-unlimited-memory' } }
      await using hostile = await openHostile({ policy, config })
      expect(hostile.report().hold).to.equal('permissions')
      await failed(hostile.attack('read', '/etc/passwd'))
      await hostile.until('tried to read /etc/passwd')
      expect(await hostile.attack('nothing')).to.equal('nothing')
    }
  )
})
