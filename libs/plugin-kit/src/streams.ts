/**
 * A stream that its first `next` opens. All calls after that go to the opened stream, so it costs nothing for each item: an async
 * generator with `yield*` costs several promises.
 */
export function lazyStream<T>(open: () => Promise<AsyncIterable<T>>): AsyncIterableIterator<T, undefined> {
  const over = { done: true, value: undefined } as const
  let source: AsyncIterator<T> | undefined
  let opening: Promise<AsyncIterator<T> | undefined> | undefined
  let isOver = false
  const begin = async () => {
    try {
      source = (await open())[Symbol.asyncIterator]()
    } catch (error) {
      isOver = true
      throw error
    }
    return source
  }
  const first = async (): Promise<IteratorResult<T, undefined>> => {
    if (isOver) return over
    await (opening ??= begin())
    if (isOver) return over
    return source!.next() as Promise<IteratorResult<T, undefined>>
  }
  return {
    next: () => (source ? (source.next() as Promise<IteratorResult<T, undefined>>) : first()),
    async return() {
      isOver = true
      await opening?.catch(() => undefined)
      await source?.return?.()
      return over
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
