import { matchesPattern } from '../loading/manifest.ts'
import { nameTaken } from './errors.ts'
import type { AnySlot, SlotChange, SlotView } from './token.ts'

interface SlotEntry {
  readonly item: unknown
  readonly plugin: string
  readonly position: number
}

/** One slot of a host. */
export interface Slot {
  readonly token: AnySlot
  readonly view: SlotView<unknown>
  /**
   * Adds an item and returns its removal. Items with a `position` in the configuration come first, in that order, whenever they
   * are added. Throws NAME_TAKEN.
   */
  add(name: string, item: unknown, plugin: string, place?: number): () => void
  /** Reports pending changes now. */
  flush(): Promise<void>
}

/** Creates a slot. `notify` receives changes, gathered to one event per turn of the event loop. */
export function createSlot(token: AnySlot, notify: (change: SlotChange) => Promise<unknown>): Slot {
  const held = new Map<string, SlotEntry>()
  let version = 0
  let pending: { added: Set<string>; removed: Set<string> } | undefined
  const flush = async () => {
    if (!pending) return
    const { added, removed } = pending
    pending = undefined
    await notify({ slot: token.name, added: [...added], removed: [...removed], version })
  }
  const changed = (name: string, to: 'added' | 'removed') => {
    version++
    if (!pending) {
      pending = { added: new Set(), removed: new Set() }
      setImmediate(() => void flush())
    }
    noteChange(pending, name, to)
  }
  return {
    token,
    view: viewOf(held, () => version),
    flush,
    add(name, item, plugin, place = Number.MAX_SAFE_INTEGER) {
      const other = held.get(name)
      if (other) throw nameTaken(plugin, token.name, name, other.plugin)
      const mine: SlotEntry = { item, plugin, position: place }
      const later = [...held].filter(([, slotEntry]) => slotEntry.position > place)
      for (const [next] of later) held.delete(next)
      for (const [next, slotEntry] of [[name, mine] as const, ...later]) held.set(next, slotEntry)
      changed(name, 'added')
      return () => {
        if (held.get(name) !== mine) return
        held.delete(name)
        changed(name, 'removed')
      }
    },
  }
}

// An item that was added and removed between two events is not reported. One that was removed and added again is reported as
// both.
function noteChange(pending: { added: Set<string>; removed: Set<string> }, name: string, to: 'added' | 'removed') {
  if (to === 'added') return void pending.added.add(name)
  const unseen = pending.added.delete(name) && !pending.removed.has(name)
  if (!unseen) pending.removed.add(name)
}

/** A view of the items that a plugin was granted by name. Other items do not exist in it. */
export function grantedView(view: SlotView<unknown>, granted: readonly string[]): SlotView<unknown> {
  const isGranted = (name: string) => granted.some(word => matchesPattern(word, name))
  const names = () => view.names().filter(isGranted)
  return Object.freeze({
    get version() {
      return view.version
    },
    get size() {
      return names().length
    },
    get: (name: string) => (isGranted(name) ? view.get(name) : undefined),
    has: (name: string) => isGranted(name) && view.has(name),
    names,
    entries: () => view.entries().filter(([name]) => isGranted(name)),
    owner: (name: string) => (isGranted(name) ? view.owner(name) : undefined),
  })
}

/** The part of a change that a plugin with single items of the slot sees. */
export function grantedChange({ added, removed, ...change }: SlotChange, granted: readonly string[]): SlotChange {
  const isGranted = (name: string) => granted.some(word => matchesPattern(word, name))
  return { ...change, added: added.filter(isGranted), removed: removed.filter(isGranted) }
}

function viewOf(held: Map<string, SlotEntry>, version: () => number): SlotView<unknown> {
  return Object.freeze({
    get version() {
      return version()
    },
    get size() {
      return held.size
    },
    get: (name: string) => held.get(name)?.item,
    has: (name: string) => held.has(name),
    names: () => [...held.keys()],
    entries: () => [...held].map(([name, slotEntry]): [string, unknown] => [name, slotEntry.item]),
    owner: (name: string) => held.get(name)?.plugin,
  })
}
