import { serialize } from 'node:v8'
import { addedTooMuch } from './errors.ts'

const MIB = 1024 * 1024
/** What one process may have added at a time: it stays in the memory of the host, and each tap of a hook may hold up whoever calls it. */
const MOST = 1000
const MOST_BYTES = 16 * MIB
const MOST_TAPS = 4
/** What may be named in all: figures are kept of each name, whether or not it is still there. */
const MOST_NAMES = 5000
/** Characters of one: what refuses it says it again. */
export const LONGEST_NAME = 300

/** One thing that a plugin adds. */
interface Wish {
  readonly path: string
  /** Of the slot and the item, or of the hook. */
  readonly name: string
  readonly isTap?: boolean
  /** What the host keeps of it. */
  readonly data?: unknown
}

/** What one process of a plugin has added and tapped. */
export interface Contributions {
  /** `add` puts it in the place of what was added from the same path, and answers with its removal. Throws ADDED_TOO_MUCH. */
  put(wish: Wish, add: () => () => void): void
  remove(path: string): void
  /** All of it goes when its process goes. */
  removeAll(): void
}

interface Held {
  readonly name: string
  readonly bytes: number
  readonly remove: () => void
}

export function createContributions(plugin: string): Contributions {
  const held = new Map<string, Held>()
  const names = new Set<string>()
  const bytesOf = (all: Iterable<Held>) => [...all].reduce((sum, one) => sum + one.bytes, 0)
  const remove = (path: string) => {
    held.get(path)?.remove()
    held.delete(path)
  }
  return {
    put({ path, name, isTap = false, data }, add) {
      remove(path)
      if (name.length > LONGEST_NAME) throw addedTooMuch(plugin, `${LONGEST_NAME} characters of a name`)
      const bytes = serialize([path, name, data]).length
      const taps = () => [...held.values()].filter(one => one.name === name).length
      if (held.size >= MOST) throw addedTooMuch(plugin, `${MOST} things`)
      if (bytesOf(held.values()) + bytes > MOST_BYTES) throw addedTooMuch(plugin, `${MOST_BYTES / MIB} MiB`)
      if (isTap && taps() >= MOST_TAPS) throw addedTooMuch(plugin, `${MOST_TAPS} taps of one hook`)
      if (names.add(name).size > MOST_NAMES) throw addedTooMuch(plugin, `${MOST_NAMES} names in all`)
      held.set(path, { name, bytes, remove: add() })
    },
    remove,
    removeAll: () => [...held.keys()].forEach(remove),
  }
}
