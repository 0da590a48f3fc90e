/** Remembers what was worked out for texts of late, bounded by the characters of the texts it holds. */
export interface LruCache<T> {
  get(text: string): T | undefined
  set(text: string, value: T): void
}

/**
 * Two generations instead of a list of last uses: a hit costs one look-up and changes nothing. When the young one is full it becomes the old one,
 * and what nobody asked for since is gone.
 */
export function createLruCache<T>(maxCharacters: number): LruCache<T> {
  let young = new Map<string, T>()
  let old = new Map<string, T>()
  let room = maxCharacters / 2
  const set = (text: string, value: T) => {
    // The empty text has weight too, and each entry costs some characters' worth.
    room -= text.length + 32
    if (room < 0) {
      old = young
      young = new Map()
      room = maxCharacters / 2 - text.length - 32
    }
    young.set(text, value)
  }
  return {
    get(text) {
      const value = young.get(text)
      if (value !== undefined) return value
      const older = old.get(text)
      if (older !== undefined) set(text, older)
      return older
    },
    set,
  }
}
