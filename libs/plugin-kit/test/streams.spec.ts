import { expect } from 'chai'
import { lazyStream } from '../src/index.ts'

describe('lazyStream', () => {
  it('opens its stream with the first call, once, and passes on items, errors and the end', async () => {
    let opened = 0
    const open = async () => {
      opened++
      return (async function* () {
        yield 1
        yield 2
      })()
    }
    const stream = lazyStream(open)
    expect(opened).to.equal(0)
    expect(await Array.fromAsync(stream)).to.deep.equal([1, 2])
    expect([opened, await stream.next()]).to.deep.equal([1, { done: true, value: undefined }])

    const failing = lazyStream<number>(async () => Promise.reject(new Error('closed')))
    const failed = await failing.next().catch((error: Error) => error.message)
    expect([failed, (await failing.next()).done]).to.deep.equal(['closed', true])
  })

  it('ends what it opened when its reader leaves, also while it opens, and opens nothing after that', async () => {
    const ended: string[] = []
    const source = (name: string) =>
      (async function* () {
        try {
          yield name
          yield name
        } finally {
          ended.push(name)
        }
      })()
    for await (const _ of lazyStream(async () => source('a'))) break
    expect(ended).to.deep.equal(['a'])

    const late = Promise.withResolvers<AsyncIterable<string>>()
    let began = false
    const slow = lazyStream(() => late.promise)
    const first = slow.next()
    const left = slow.return!()
    late.resolve({
      [Symbol.asyncIterator]: () => ({
        next: async () => ((began = true), { done: true, value: undefined }),
        return: async () => (ended.push('b'), { done: true, value: undefined }),
      }),
    })
    expect([(await first).done, (await left).done, began, ended]).to.deep.equal([true, true, false, ['a', 'b']])

    const unread = lazyStream(async () => source('never'))
    await unread.return!()
    expect((await unread.next()).done).to.equal(true)
  })
})
