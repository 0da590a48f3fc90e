import { definePlugin, defineService, startHost, type CallContext } from '@svc/core'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { ctx, entry, problemOf } from './support/kernel.ts'

interface Shelf {
  keep(word: string, ctx: CallContext): Promise<string>
}
interface Tally {
  count(word: string, ctx: CallContext): Promise<number>
}
const Shelf = defineService<Shelf>('shelf', { api: 1, methods: { keep: 'call' } })
const Tally = defineService<Tally>('tally', { api: 1, methods: { count: 'call' } })

const shelf = definePlugin({
  provides: Shelf,
  alsoProvides: [Tally],
  setup: () => ({ keep: async (word: string) => word, count: async (word: string) => word.length }),
})
const tally = (count: number) => definePlugin({ provides: Tally, setup: () => ({ count: async () => count }) })
const reader = (read: (count: number) => void) =>
  definePlugin({
    requires: { tally: Tally },
    async setup(_scope, { tally: given }) {
      read(await given.count('four', ctx))
    },
  })

describe('a plugin that provides further services', () => {
  it('serves those that require one, set up before them, and reports its names', async () => {
    const read: number[] = []
    await using host = await testHost([
      entry(
        'reader',
        reader(count => read.push(count))
      ),
      entry('shelf', shelf),
    ])
    expect(read).to.deep.equal([4])
    expect(await host.service(Shelf).keep('x', ctx)).to.equal('x')
    const report = host.report().plugins.find(({ name }) => name === 'shelf')
    expect(report).to.deep.include({ provides: 'shelf', alsoProvides: ['tally'] })
  })

  it('gives way to a plugin whose service one of them is, in any order', async () => {
    for (const plugins of [
      [entry('shelf', shelf), entry('tally', tally(7))],
      [entry('tally', tally(7)), entry('shelf', shelf)],
    ]) {
      const read: number[] = []
      await using host = await testHost([
        entry(
          'reader',
          reader(count => read.push(count))
        ),
        ...plugins,
      ])
      expect(read).to.deep.equal([7])
      expect(await host.service(Tally).count('four', ctx)).to.equal(7)
    }
  })

  it('is rejected beside another one with the same further service, and if its object lacks a method', async () => {
    const Other = defineService<Shelf>('other', { api: 1, methods: { keep: 'call' } })
    const other = definePlugin({
      provides: Other,
      alsoProvides: [Tally],
      setup: () => ({ keep: async (word: string) => word, count: async () => 1 }),
    })
    expect(await problemOf({ plugins: [entry('shelf', shelf), entry('other', other)] })).to.include({
      code: 'SERVICE_TAKEN',
      plugin: 'other',
    })
    const half = definePlugin({
      provides: Shelf,
      alsoProvides: [Tally],
      setup: () => ({ keep: async (word: string) => word }) as unknown as Shelf & Tally,
    })
    const problem = await problemOf({ plugins: [entry('half', half)] })
    expect(problem).to.include({ code: 'SETUP_FAILED', message: 'its setup failed: it provides "tally" without count' })
  })

  it('has one object with the methods of all, which the compiler checks', async () => {
    // @ts-expect-error it lacks the methods of Tally
    definePlugin({ provides: Shelf, alsoProvides: [Tally], setup: () => ({ keep: async (word: string) => word }) })
    await using host = await startHost({ plugins: [entry('shelf', shelf)] })
    expect(await host.service(Tally).count('abc', ctx)).to.equal(3)
  })
})
