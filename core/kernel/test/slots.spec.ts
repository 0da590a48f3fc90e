import { setImmediate as turn } from 'node:timers/promises'
import { definePlugin, Host, type Scope, type SlotChange, type SlotView, startHost } from '@svc/core'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { entry, ctx, type Word, word, Words } from './support/kernel.ts'

/** A host with one plugin that adds and one that looks on. */
async function open(first: (scope: Scope) => void = () => {}) {
  const seen: SlotChange[] = []
  const atReady: number[] = []
  let scope!: Scope
  let view!: SlotView<Word>
  const plugins = [
    entry('adder', definePlugin({ setup: mine => first((scope = mine)) })),
    entry(
      'looker',
      definePlugin({
        requires: { words: Words },
        setup(mine, { words }) {
          view = words
          mine.tap(Words.changed, change => void seen.push(change))
          mine.tap(Host.hooks.ready, () => void atReady.push(seen.length))
        },
      })
    ),
  ]
  const host = await startHost({ plugins })
  return { host, scope, view, seen, atReady, [Symbol.asyncDispose]: () => host.close() }
}

describe('a slot', () => {
  it('counts calls, errors and time of what a plugin has added, method by method', async () => {
    await using host = await open(scope => {
      scope.add(Words, 'good', word('good'))
      scope.add(Words, 'bad', { text: 'bad', say: () => Promise.reject(new Error('no')) })
      scope.add(Words, 'worse', {
        text: 'worse',
        say() {
          throw new Error('no')
        },
      })
    })
    const say = (name: string) => host.view.get(name)!.say(ctx)
    expect(await say('good')).to.equal('good')
    await failureOf(say('bad'))
    expect(() => say('worse')).to.throw('no')
    const [stats] = host.host.report().calls
    expect(stats).to.include({ plugin: 'adder', slot: 'words', method: 'say', calls: 3, errors: 2 })
    expect(stats?.ms).to.be.greaterThan(0)
  })

  it('shows what is in it now, in the order it was added, and whose it is', async () => {
    await using host = await open(scope => void scope.add(Words, 'a', word('A')))
    const { view, scope } = host
    const remove = scope.add(Words, 'b', word('B'))
    expect(view.names()).to.deep.equal(['a', 'b'])
    expect(view.entries().map(([name, item]) => `${name} ${item.text}`)).to.deep.equal(['a A', 'b B'])
    expect([view.size, view.has('b'), view.owner('b'), view.get('b')?.text]).to.deep.equal([2, true, 'adder', 'B'])
    remove()
    expect([view.size, view.has('b'), view.owner('b'), view.get('b')]).to.deep.equal([1, false, undefined, undefined])
  })

  it('knows no names of the prototype', async () => {
    await using host = await open()
    expect(host.view.get('constructor')).to.equal(undefined)
    expect(host.view.has('__proto__')).to.equal(false)
    host.scope.add(Words, '__proto__', word('p'))
    expect(host.view.names()).to.deep.equal(['__proto__'])
  })

  it('has a version that grows with every change', async () => {
    await using host = await open()
    const { view, scope } = host
    const versions = [view.version]
    const remove = scope.add(Words, 'a', word('A'))
    versions.push(view.version)
    remove()
    versions.push(view.version)
    remove()
    versions.push(view.version)
    expect(versions).to.deep.equal([0, 1, 2, 2])
  })

  it('tells the changes of one turn of the loop in one event', async () => {
    await using host = await open()
    const { scope, seen } = host
    scope.add(Words, 'a', word('A'))
    scope.add(Words, 'b', word('B'))
    scope.add(Words, 'c', word('C'))()
    expect(seen).to.deep.equal([])
    await turn()
    expect(seen).to.deep.equal([{ slot: 'words', added: ['a', 'b'], removed: [], version: 4 }])
  })

  it('tells a name that went and came again as removed and added, and one that came and went as nothing', async () => {
    await using host = await open()
    const { scope, seen } = host
    const remove = scope.add(Words, 'a', word('A'))
    await turn()
    remove()
    scope.add(Words, 'a', word('new'))
    scope.add(Words, 'b', word('B'))()
    await turn()
    expect(seen.at(-1)).to.deep.include({ added: ['a'], removed: ['a'] })
  })

  it('tells pending changes before ready', async () => {
    await using host = await open(scope => void scope.add(Words, 'a', word('A')))
    expect(host.atReady).to.deep.equal([1])
    expect(host.seen).to.have.length(1)
  })

  it('frees a name for others when it is removed', async () => {
    await using host = await open()
    host.scope.add(Words, 'a', word('A'))()
    host.scope.add(Words, 'a', word('B'))
    expect(host.view.get('a')?.text).to.equal('B')
  })

  it('takes nothing any more from a plugin that was closed', async () => {
    const host = await open()
    await host.host.close()
    const late = () => host.scope.add(Words, 'a', word('A'))
    expect(await failureOf((async () => late())())).to.include({ code: 'SCOPE_CLOSED', plugin: 'adder' })
    expect(host.view.size).to.equal(0)
  })
})
