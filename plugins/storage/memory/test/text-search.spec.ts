import { setImmediate as nextTurn } from 'node:timers/promises'
import { systemContext } from '@svc/core'
import { expect } from 'chai'
import { createMemoryStore } from '../src/store.ts'

const SPACE = {
  name: 'notes',
  version: 1,
  collections: { notes: { text: { words: { fields: ['text'], filters: [] } } } },
}

describe('a search in the store in memory', () => {
  it('reads words between the turns of the event loop, and sees what is changed meanwhile', async () => {
    await using store = createMemoryStore({ maxRecords: 1_000_000, maxBytes: 1 << 30, evict: true })
    const ctx = systemContext(new AbortController().signal)
    await store.open(SPACE, ctx)
    const put = (key: string, text: string) => store.batch([{ op: 'put', collection: 'notes', key, value: { text } }], {}, ctx)
    const find = async (query: string, signal = ctx.signal) => {
      const { hits } = await store.search('notes', { index: 'words', query, limit: 10 }, systemContext(signal))
      return hits.map(({ record }) => record.key)
    }
    const words = Array.from({ length: 40 }, (_, at) => `word${at}`).join(' ')
    for (let at = 0; at < 8_000; at += 1000)
      await store.batch(
        Array.from({ length: 1000 }, (_, more) => ({
          op: 'put' as const,
          collection: 'notes',
          key: `note${at + more}`,
          value: { text: `${words} only${at + more}` },
        })),
        {},
        ctx
      )
    let turns = 0
    const searches = Promise.all([find('only7999'), find('late'), find('only0')])
    const isOver = searches.then(() => true)
    await nextTurn()
    await put('late', 'late words')
    await put('note0', 'rewritten')
    while (!(await Promise.race([isOver, nextTurn(false)]))) turns++
    expect(turns).to.be.above(5)
    expect(await searches).to.deep.equal([['note7999'], ['late'], []])
    await put('note7999', 'other text')
    expect(await find('only7999')).to.deep.equal([])
    const away = AbortSignal.abort(new Error('away'))
    expect(await find('late', away).catch((error: Error) => error.message)).to.equal('away')
  })
})
