import { definePlugin, Host, type Plugin, type Scope, startHost, svcError } from '@svc/core'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { entry, Greeter, greeter, ctx } from './support/kernel.ts'

const taps = (name: string, setup: (scope: Scope) => void, more: Partial<Plugin> = {}) =>
  entry(name, definePlugin({ ...(more as object), setup }))
const never = new Promise<never>(() => {})
const { before, refuse, greeted } = Greeter.hooks
const greet = (host: { service(token: typeof Greeter): Greeter }) => host.service(Greeter).greet('you', ctx)
const logTo = (lines: string[]) => ({ log: { destination: { write: (line: string) => void lines.push(line) } } })
/** Taps a hook whose failures rise. */
const TAPS = {
  bail: (scope: Scope, run: () => Promise<never>, options = {}) => scope.tap(refuse, run, options),
  waterfall: (scope: Scope, run: () => Promise<never>, options = {}) => scope.tap(before, run, options),
}
const RISING = [
  ['bail', refuse],
  ['waterfall', before],
] as const
const LIMIT = { host: { tap_timeout_ms: 60 } }

describe('a hook', () => {
  it('of kind waterfall hands each tap what the one before returned', async () => {
    const plugins = [
      taps('a', scope => scope.tap(before, async name => `${name}1`)),
      greeter(),
      taps('b', scope => scope.tap(before, name => `${name}2`)),
    ]
    await using host = await startHost({ plugins })
    expect(await greet(host)).to.equal('hello you12')
  })

  it('of kind bail takes the first answer, and asks no tap after it', async () => {
    const asked: string[] = []
    const answer = (name: string, text: string | undefined) =>
      taps(name, scope => void scope.tap(refuse, () => (asked.push(name), text)))
    await using host = await startHost({
      plugins: [greeter(), answer('a', undefined), answer('b', 'no'), answer('c', 'never asked')],
    })
    expect(await greet(host)).to.equal('no')
    expect(asked).to.deep.equal(['a', 'b'])
  })

  it('of kind series tells everybody, one after the other', async () => {
    const reported: string[] = []
    const look = (name: string) =>
      taps(name, scope => {
        scope.tap(greeted, async text => {
          reported.push(`${name} begins`)
          await Promise.resolve()
          reported.push(`${name} saw ${text}`)
        })
      })
    await using host = await startHost({ plugins: [look('a'), look('b'), greeter()] })
    await greet(host)
    expect(reported).to.deep.equal(['a begins', 'a saw hello you', 'b begins', 'b saw hello you'])
  })

  it('passes on what it was given where no plugin taps', async () => {
    await using host = await startHost({ plugins: [greeter()] })
    expect(await greet(host)).to.equal('hello you')
  })

  it('runs its taps in start order, with the stage as exception', async () => {
    const say = (name: string, stage?: number) =>
      taps(name, scope => void scope.tap(before, text => `${text} ${name}`, stage === undefined ? {} : { stage }))
    await using host = await startHost({ plugins: [say('late', 1), say('a'), greeter(), say('early', -1), say('b')] })
    expect(await greet(host)).to.equal('hello you early a b late')
  })

  it('is not tapped any more after the removal, also by who asked for it twice', async () => {
    let remove = () => {}
    const plugins = [greeter(), taps('a', scope => void (remove = scope.tap(before, text => `${text}!`)))]
    await using host = await startHost({ plugins })
    expect(await greet(host)).to.equal('hello you!')
    remove()
    remove()
    expect(await greet(host)).to.equal('hello you')
  })

  it('with a thousand taps that answer at once calls them all', async () => {
    const many = taps('many', scope => {
      for (let at = 0; at < 1000; at++) scope.tap(before, text => `${text}.`)
    })
    await using host = await startHost({ plugins: [greeter(), many] })
    expect(await greet(host)).to.equal(`hello you${'.'.repeat(1000)}`)
  })

  it('counts calls, errors and time for each plugin, whatever its name', async () => {
    const plugins = [
      greeter(),
      taps('my plugin', scope => {
        scope.tap(before, text => text)
        scope.tap(greeted, () => Promise.reject(new Error('no')))
      }),
      taps('b', scope => void scope.tap(before, async text => text)),
    ]
    await using host = await startHost({ plugins })
    await greet(host)
    await greet(host)
    const stats = host.report().hooks
    expect(stats.map(({ ms: _ms, ...item }) => item)).to.deep.equal([
      { plugin: 'my plugin', hook: 'greeter.before', calls: 2, errors: 0 },
      { plugin: 'my plugin', hook: 'greeter.greeted', calls: 2, errors: 2 },
      { plugin: 'b', hook: 'greeter.before', calls: 2, errors: 0 },
    ])
    for (const { ms } of stats) expect(ms).to.be.greaterThan(0)
  })

  it('counts nothing where nothing shall be counted, and limits all the same', async () => {
    const plugins = [greeter(), taps('hangs', scope => void scope.tap(before, () => never))]
    await using host = await startHost({ plugins, config: { host: { ...LIMIT.host, accounting: false } } })
    expect(await failureOf(greet(host))).to.include({ code: 'TAP_TIMEOUT', plugin: 'hangs' })
    const { hooks, calls } = host.report()
    expect(hooks.map(hook => [hook.plugin, hook.calls, hook.errors, hook.ms])).to.deep.equal([['hangs', 0, 0, 0]])
    expect(calls).to.deep.equal([])
  })

  it('names a slow tap in the log, and one that asked for a limit of its own when half of that is over', async () => {
    const lines: string[] = []
    const busy = (name: string) => {
      for (const until = performance.now() + 3; performance.now() < until; );
      return name
    }
    const plugins = [
      greeter(),
      taps('slow', scope => void scope.tap(before, busy)),
      taps('patient', scope => void scope.tap(before, busy, { limitMs: 600_000 })),
      taps('fast', scope => void scope.tap(before, name => name, { limitMs: 600_000 })),
    ]
    await using host = await startHost({ plugins, config: { host: { slow_tap_ms: 1 } }, ...logTo(lines) })
    await greet(host)
    const reported = lines.map(
      line => JSON.parse(line) as { plugin: string; hook: string; ms: number; slow_tap_ms: number; msg: string }
    )
    expect(reported).to.have.length(1)
    expect(reported[0]).to.include({ plugin: 'slow', hook: 'greeter.before', slow_tap_ms: 1, msg: 'a tap is slow' })
    expect(reported[0]!.ms).to.be.at.least(3)
  })
})

describe('a tap that fails', () => {
  it('in a series is counted and logged, and breaks nothing, also when it hangs', async () => {
    const lines: string[] = []
    let reported = 0
    const plugins = [
      taps(
        'throws',
        scope =>
          void scope.tap(greeted, () => {
            throw new Error('no luck')
          })
      ),
      taps('hangs', scope => void scope.tap(greeted, () => never)),
      taps('looks', scope => void scope.tap(greeted, () => void reported++)),
      greeter(),
    ]
    await using host = await startHost({ plugins, config: LIMIT, ...logTo(lines) })
    expect(await greet(host)).to.equal('hello you')
    expect(reported).to.equal(1)
    expect(host.report().hooks.map(hook => [hook.plugin, hook.errors])).to.deep.equal([
      ['throws', 1],
      ['hangs', 1],
      ['looks', 0],
    ])
    const logged = lines.map(line => JSON.parse(line) as { plugin: string; hook: string; err: { code: string } })
    expect(logged.map(item => [item.plugin, item.hook, item.err.code])).to.deep.equal([
      ['throws', 'greeter.greeted', 'TAP_FAILED'],
      ['hangs', 'greeter.greeted', 'TAP_TIMEOUT'],
    ])
  })

  for (const [kind, hook] of RISING)
    it(`in a ${kind} rises with its plugin and hook, its code and its hint`, async () => {
      const fails = (cause: Error) => ({
        plugins: [greeter(), taps('bad', scope => void TAPS[kind](scope, () => Promise.reject(cause)))],
      })
      await using host = await startHost(fails(new Error('no luck')))
      const error = await failureOf(greet(host))
      expect(error).to.include({ code: 'TAP_FAILED', plugin: 'bad', where: hook.id, message: 'no luck' })
      expect(error.hint).to.include('Disable bad')
      await using coded = await startHost(fails(svcError('DENIED', 'not you', { hint: 'ask nicely', details: { who: 'you' } })))
      const denied = await failureOf(greet(coded))
      expect(denied).to.include({ code: 'DENIED', plugin: 'bad', where: hook.id, hint: 'ask nicely' })
      expect(denied.details).to.deep.equal({ who: 'you', hook: hook.id })
    })

  for (const [kind, hook] of RISING)
    it(`by hanging in a ${kind} is ended at its limit`, async () => {
      await using host = await startHost({
        plugins: [greeter(), taps('slow', scope => void TAPS[kind](scope, () => never))],
        config: LIMIT,
      })
      const error = await failureOf(greet(host))
      expect(error).to.include({ code: 'TAP_TIMEOUT', plugin: 'slow', where: hook.id })
      expect(error.message).to.equal(`its tap of ${hook.id} did not end within 60 ms`)
      expect(error.hint).to.include('limitMs').and.include('host.tap_timeout_ms')
    })

  it('by answering after its limit changes nothing any more', async () => {
    const late = Promise.withResolvers<string>()
    const asked: string[] = []
    const plugins = [
      taps('late', scope => void scope.tap(before, () => late.promise)),
      taps('next', scope => void scope.tap(before, name => (asked.push(name), `${name}!`))),
      greeter(),
      taps('looks late', scope => void scope.tap(greeted, () => late.promise.then(() => {}))),
      taps('looks', scope => void scope.tap(greeted, text => void asked.push(text))),
    ]
    await using host = await startHost({ plugins, config: LIMIT })
    expect(await failureOf(greet(host))).to.include({ code: 'TAP_TIMEOUT', plugin: 'late' })
    late.resolve('you')
    expect(await greet(host)).to.equal('hello you!')
    expect(asked).to.deep.equal(['you', 'hello you!'])
    expect(host.report().hooks.map(hook => [hook.plugin, hook.calls, hook.errors])).to.deep.equal([
      ['late', 2, 1],
      ['next', 1, 0],
      ['looks late', 1, 0],
      ['looks', 1, 0],
    ])
  })

  it('is held to its own limit where it has one', async () => {
    const slow = taps('slow', scope => void scope.tap(before, () => never, { limitMs: 20 }))
    await using host = await startHost({ plugins: [greeter(), slow] })
    expect((await failureOf(greet(host))).message).to.include('within 20 ms')
  })

  it('names the plugin whose work it was doing, where that is known', async () => {
    const fails = () => Promise.reject(svcError('DENIED', 'not you', { plugin: 'other' }))
    const plugins = [greeter(), taps('bad', scope => void TAPS.bail(scope, fails))]
    await using host = await startHost({ plugins })
    expect(await failureOf(greet(host))).to.include({ code: 'DENIED', plugin: 'other', message: 'not you' })
  })

  it('of ready fails the start, and of closing does not keep a host from closing', async () => {
    const closed: string[] = []
    const plugin = (fails: boolean) =>
      taps('a', scope => {
        scope.defer(() => closed.push('undone'))
        scope.tap(Host.hooks.closing, () => {
          throw new Error('no')
        })
        if (fails)
          scope.tap(Host.hooks.ready, () => {
            throw new Error('port taken')
          })
      })
    const error = (await failureOf(startHost({ plugins: [plugin(true)] }))) as unknown as { problems: object[] }
    expect(error.problems[0]).to.include({ code: 'TAP_FAILED', plugin: 'a', where: 'host.ready', message: 'port taken' })
    const named = taps('b', scope =>
      scope.tap(Host.hooks.ready, () => {
        throw svcError('KEY_MISSING', 'no key', { where: 'auth_schemes.badge.prepare' })
      })
    )
    const placed = (await failureOf(startHost({ plugins: [named] }))) as unknown as { problems: object[] }
    expect(placed.problems[0]).to.include({ code: 'KEY_MISSING', plugin: 'b', where: 'auth_schemes.badge.prepare' })
    await (await startHost({ plugins: [plugin(false)] })).close()
    expect(closed).to.deep.equal(['undone', 'undone'])
  })
})
