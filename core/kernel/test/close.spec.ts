import { definePlugin, Host, type RunningHost, startHost } from '@svc/core'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { entry, Greeter, greeter, ctx, word, Words } from './support/kernel.ts'

const never = new Promise<never>(() => {})
const HURRY = { host: { setup_timeout_ms: 30, close_timeout_ms: 30, tap_timeout_ms: 30 } }

describe('a close', () => {
  const closes = (undo: () => unknown, name = 'bad') => entry(name, definePlugin({ setup: scope => scope.defer(undo) }))

  it('goes on when an undo throws, and tells it with its plugin', async () => {
    const undone: string[] = []
    const good = (name: string) => closes(() => undone.push(name), name)
    const host = await startHost({
      plugins: [
        good('a'),
        closes(() => {
          throw new Error('stuck')
        }),
        good('b'),
      ],
    })
    const error = await failureOf(host.close())
    expect(error).to.include({ code: 'CLOSE_FAILED', plugin: 'bad', message: 'an undo function failed: stuck' })
    expect(error.hint).to.be.a('string')
    expect(undone).to.deep.equal(['b', 'a'])
    expect(host.report().state).to.equal('closed')
  })

  it('does not wait for an undo that hangs', async () => {
    const undone: string[] = []
    const host = await startHost({ plugins: [closes(() => undone.push('a'), 'a'), closes(() => never)], config: HURRY })
    const error = await failureOf(host.close())
    expect(error).to.include({
      code: 'CLOSE_FAILED',
      plugin: 'bad',
      message: 'an undo function failed: the work did not end within 30 ms',
    })
    expect(undone).to.deep.equal(['a'])
  })

  it('tells every undo that failed', async () => {
    const bad = (name: string) =>
      closes(() => {
        throw new Error(name)
      }, name)
    const host = await startHost({ plugins: [bad('a'), bad('b')] })
    const { problems } = (await failureOf(host.close())) as unknown as { problems: { plugin: string; hint: string }[] }
    expect(problems.map(problem => problem.plugin)).to.deep.equal(['b', 'a'])
    expect(problems[0]?.hint).to.include('host.close_timeout_ms')
  })

  it('may be asked for twice: it undoes once, and both wait for the same end', async () => {
    let undone = 0
    const host = await startHost({ plugins: [closes(() => undone++)] })
    await Promise.all([host.close(), host.close()])
    await host.close()
    expect(undone).to.equal(1)
  })

  it('aborts the signal of each plugin before its undos', async () => {
    const seen: boolean[] = []
    const plugin = definePlugin({ setup: scope => scope.defer(() => seen.push(scope.signal.aborted)) })
    await (await startHost({ plugins: [entry('a', plugin)] })).close()
    expect(seen).to.deep.equal([true])
  })

  it('leaves nothing: what was added, tapped and counted before is as much as after', async () => {
    const counts = (host: RunningHost) => [host.slot(Words).size, host.report().plugins.length]
    const adds = definePlugin({
      setup(scope) {
        scope.add(Words, 'hi', word('hi'))
        scope.tap(Greeter.hooks.greeted, () => {})
        const remove = scope.add(Words, 'early', word('early'))
        remove()
        remove()
      },
    })
    const host = await startHost({ plugins: [entry('adds', adds), greeter()] })
    expect(host.report().plugins[0]?.added).to.deep.equal({ words: ['hi'] })
    expect(counts(host)).to.deep.equal([1, 2])
    await host.close()
    expect(counts(host)).to.deep.equal([0, 0])
  })
})

describe('a start that its signal ends', () => {
  it('undoes what is set up, and throws the reason, in a setup that hangs and in a tap of ready', async () => {
    for (const hangs of ['setup', 'ready'] as const) {
      const undone: string[] = []
      const ending = new AbortController()
      const reason = new Error('stopped')
      const stop = () => {
        ending.abort(reason)
        return never
      }
      const first = definePlugin({ setup: scope => scope.defer(() => undone.push('first')) })
      const second = definePlugin({
        setup(scope) {
          scope.defer(() => undone.push('second'))
          if (hangs === 'setup') return stop()
          scope.tap(Host.hooks.ready, stop)
          return undefined
        },
      })
      const plugins = [entry('first', first), { ...entry('second', second), optional: true }]
      const failed = await startHost({ plugins, signal: ending.signal }).catch((error: unknown) => error)
      expect(failed).to.equal(reason)
      expect(undone).to.deep.equal(['second', 'first'])
    }
  })

  it('does not begin when the signal was aborted before', async () => {
    let begun = 0
    const plugin = definePlugin({ setup: () => void begun++ })
    const failed = await startHost({ plugins: [entry('a', plugin)], signal: AbortSignal.abort(new Error('stopped')) }).catch(
      (error: Error) => error.message
    )
    expect([failed, begun]).to.deep.equal(['stopped', 0])
  })
})

describe('two hosts in one process', () => {
  it('know nothing of each other', async () => {
    const says = (text: string) =>
      entry(
        'says',
        definePlugin({
          setup(scope) {
            scope.add(Words, 'hi', word(text))
            scope.tap(Greeter.hooks.before, name => `${name} ${text}`)
          },
        })
      )
    const a = await startHost({ plugins: [greeter(), says('a')] })
    await using b = await startHost({ plugins: [greeter(), says('b')] })
    expect(a.slot(Words).get('hi')?.text).to.equal('a')
    expect(await a.service(Greeter).greet('x', ctx)).to.equal('hello x a')
    await a.close()
    expect(b.slot(Words).get('hi')?.text).to.equal('b')
    expect(await b.service(Greeter).greet('x', ctx)).to.equal('hello x b')
    expect(a.report().serverId).to.not.equal(b.report().serverId)
  })
})
