import type { StoreChange } from '@svc/core/contracts'
import { type Room, thingName } from './room.ts'
import type { Table } from './table.ts'

/** What the batch at work has done so far: how to take it back, what it touched, what watchers will hear. */
export interface Journal {
  readonly changes: StoreChange[]
  /** The things it touched, by `thingName`. */
  touched(): ReadonlySet<string>
  /** Notes how to take a step back. */
  undone(by: () => void): void
  /** Counts a thing's change. */
  account(space: string, id: string, bytes: number, count: number): void
  /** Notes what watchers of a table will hear of a key. */
  tell(table: Table, collection: string, key: string): void
  /** Takes everything back, last first. */
  rollBack(): void
}

/** Begins the journal of a batch. */
export function createJournal(room: Room): Journal {
  const undo: (() => void)[] = []
  const changes: StoreChange[] = []
  const things: [space: string, id: string][] = []
  return {
    changes,
    touched: () => new Set(things.map(([space, id]) => thingName(space, id))),
    undone: by => void undo.push(by),
    account(space, id, bytes, count) {
      room.change(space, id, bytes, count)
      things.push([space, id])
      undo.push(() => room.change(space, id, -bytes, -count))
    },
    tell(table, collection, key) {
      if (!table.watched) return
      const record = table.get(key)?.record
      changes.push(record ? { collection, ...record } : { collection, key, version: 0 })
    },
    rollBack() {
      for (const step of undo.reverse()) step()
    },
  }
}
