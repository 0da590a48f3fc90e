/** Does works of one key one after the other: two edits of one file must both count. */
export function createLocks() {
  const last = new Map<string, Promise<unknown>>()
  return async function alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = last.get(key)
    const mine = (async () => {
      await before?.catch(() => {})
      return work()
    })()
    last.set(key, mine)
    try {
      return await mine
    } finally {
      if (last.get(key) === mine) last.delete(key)
    }
  }
}

export type Alone = ReturnType<typeof createLocks>
