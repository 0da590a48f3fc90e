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

/** Items that come and go often, such as running calls, in no order. */
export interface ActiveItems<T> {
  readonly size: number
  all(): T[]
  /** Adds an item. The result removes it. */
  add(item: T): Disposable
}

/**
 * Creates a list of items that come and go often. In a busy Set or Map they would stay in memory: V8 makes a new table every few
 * changes and links each table to the next, so one old table keeps all later ones, with their items, until a full collection.
 */
export function createActiveItems<T>(): ActiveItems<T> {
  const entries: { readonly item: T; place: number }[] = []
  return {
    get size() {
      return entries.length
    },
    all: () => entries.map(({ item }) => item),
    add(item) {
      const entry = { item, place: entries.length }
      entries.push(entry)
      return {
        [Symbol.dispose]() {
          if (entry.place < 0) return
          const last = entries.pop()!
          if (last !== entry) entries[(last.place = entry.place)] = last
          entry.place = -1
        },
      }
    },
  }
}
