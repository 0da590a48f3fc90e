import { systemUse } from '@svc/core'
import { Checks, MetricSources, Tools } from '@svc/core/contracts'
import { testUse } from '@svc/core/testing'
import { expect } from 'chai'
import { Gong } from './support/hostile/gong.ts'
import { failed, type Hostile, openHostile, withSandbox } from './support/hostile.ts'

const use = systemUse(new AbortController().signal)
const healthOf = async ({ host }: Hostile) => host.slot(Checks).get('plugins')!.probe(use)

/** A host for several cases; deaths in a row wait ever longer, so there are some of these. */
function shared(memory = '128M'): { readonly one: Hostile; dies(what: string, given: string, how: RegExp): Promise<void> } {
  const held = {} as { one: Hostile }
  before(async () => {
    held.one = await openHostile({ config: { isolation: { hang_timeout: 1, restarts: 100, memory } } })
  })
  after(() => held.one?.[Symbol.asyncDispose]())
  return {
    get one() {
      return held.one
    },
    /** It dies of something: the log tells how it ended, and it is back. */
    async dies(what, given, how) {
      const { one } = held
      const before = one.report().restarts!
      const from = one.lines.length
      const call = await failed(one.attack(what, given)).catch(() => 'PLUGIN_GONE')
      expect(call).to.match(/PLUGIN_GONE/)
      while (one.report().restarts === before) await new Promise(resolve => setImmediate(resolve))
      await one.back()
      expect(await one.attack('nothing')).to.equal('nothing')
      expect(one.lines.slice(from).join('')).to.match(how)
    },
  }
}

withSandbox('an isolated plugin, of which only its own calls fail and which comes back, when it', () => {
  const box = shared()
  it('takes too much memory', () => box.dies('memory', '', /it took more memory than it may \(134217728 bytes\)/))
  it('loops without an end', () => box.dies('loop', '', /it hangs: no answer for 1000 ms/))
  it('ends itself', () => box.dies('exit', '7', /code 7/))
})

withSandbox('an isolated plugin, which comes back when it', () => {
  const box = shared()
  it('has an exception that nobody catches', () => box.dies('crash', '', /Error: crashed/))
  it('has a rejection that nobody handles', () => box.dies('reject', '', /Error: rejected/))
  it('announces a message of four gigabytes', () => box.dies('frame', '', /has ended/))
})

withSandbox('an isolated plugin that misbehaves', () => {
  const box = shared('256M')

  it('answers more than a message may hold: that call fails, and the next is answered', async () => {
    expect(await failed(box.one.attack('large', String(65 * 1024 * 1024)))).to.match(
      /FRAME_TOO_LARGE|STRING_TOO_LONG|PLUGIN_GONE/
    )
    await box.one.back()
    expect(await box.one.attack('nothing')).to.equal('nothing')
  })

  it('never answers a hook: the one who calls is told, and the host goes on', async () => {
    expect(await failed(box.one.host.service(Gong).strike(testUse()))).to.match(/TAP_TIMEOUT/)
    expect(await box.one.attack('nothing')).to.equal('nothing')
  })

  it('writes more lines than may be: they are left out and counted', async () => {
    for (const what of ['print', 'log']) {
      const from = box.one.lines.length
      await box.one.attack(what, '5000')
      await box.one.until('it wrote too much: lines were left out')
      expect(box.one.lines.length - from, what).to.be.below(400)
    }
  })

  it('reaches for more names than may be told: they are only counted', async () => {
    const from = box.one.lines.length
    await box.one.attack('touch', '400')
    await box.one.until('was refused more than 100 things')
    expect(box.one.lines.slice(from).filter(line => line.includes('tried to')).length).to.be.below(101)
    while ((box.one.report().refusals?.env ?? 0) < 400) await new Promise(resolve => setImmediate(resolve))
  })

  it('is in the figures: processor, memory, restarts, refusals', async () => {
    while (!(box.one.report().memoryBytes! > 0)) await new Promise(resolve => setImmediate(resolve))
    const families = await box.one.host.slot(MetricSources).get('isolation')!.read(use)
    const valueOf = (name: string) => families.find(family => family.name === name)!.values[0]!.value
    expect(valueOf('svc_plugin_up')).to.equal(1)
    expect(valueOf('svc_plugin_memory_bytes')).to.be.above(1_000_000)
    expect(valueOf('svc_plugin_cpu_seconds_total')).to.be.above(0)
    expect(valueOf('svc_plugin_restarts_total')).to.equal(0)
    expect(families.find(one => one.name === 'svc_plugin_refusals_total')!.values[0]!.labels).to.include({ kind: 'env' })
  })
})

withSandbox('an isolated plugin that dies again and again', () => {
  it('is quarantined: what it added is gone, and /health says so', async () => {
    await using one = await openHostile({ config: { isolation: { plugins: { 'svc-plugin-hostile': { restarts: 1 } } } } })
    expect((await healthOf(one)).status).to.equal('healthy')
    await failed(one.attack('exit', '1'))
    while (one.report().restarts === 0) await new Promise(resolve => setImmediate(resolve))
    await one.back()
    const attack = one.host.slot(Tools).get('attack')!
    await failed(one.attack('exit', '1'))
    await one.until('too often')
    expect(one.report()).to.include({ state: 'quarantined', restarts: 1 })
    expect(one.host.slot(Tools).has('attack')).to.equal(false)
    expect(await failed(attack.call({ what: 'nothing' }, testUse()))).to.match(/PLUGIN_GONE/)
    expect(await healthOf(one)).to.include({ status: 'degraded', reason: 'svc-plugin-hostile is quarantined' })
  })

  it('fails the start where its setup ends or hangs, and says how', async () => {
    for (const [setup, how] of [
      ['exit', /code 3/],
      ['loop', /it hangs/],
      ['never', /SETUP_TIMEOUT/],
    ] as const) {
      const host = { setup_timeout_ms: setup === 'never' ? 1500 : 15_000, tap_timeout_ms: 300 }
      const config = { hostile: { setup, with: '3' }, isolation: { hang_timeout: 1 }, host }
      expect(await failed(openHostile({ config }))).to.match(how)
    }
  })
})

describe('without a sandbox', () => {
  const policy = [new URL('../', import.meta.url)]

  it('an isolated plugin is refused with what would mend that', async () => {
    const error = await failed(openHostile({ policy }))
    expect(error).to.match(/cannot hold/)
    expect(error).to.include('run-with-open-network-and-unlimited-memory')
  })

  it('runs behind the permission model of Node alone where the configuration says so in words', async () => {
    const config = { isolation: { without_sandbox: 'run-with-open-network-and-unlimited-memory' } }
    await using one = await openHostile({ policy, config })
    expect(one.report().hold).to.equal('permissions')
    await failed(one.attack('read', '/etc/passwd'))
    await one.until('tried to read /etc/passwd')
    expect(await one.attack('nothing')).to.equal('nothing')
  })
})
