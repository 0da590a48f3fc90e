import type { DatabaseSync } from 'node:sqlite'
import { RowCache } from './rows.ts'
import { Refusal } from './file-errors.ts'
import type { Answer } from './wire.ts'

/** The leases in the file, as the writer changes them inside a transaction. */
export interface LeaseTable {
  acquire(lease: string, holder: string, ttlMs: number): Answer
  renew(lease: string, fence: number, ttlMs: number): Answer
  release(lease: string, fence: number): Answer
  releaseHolder(prefix: string): Answer
  check(lease: string, fence: number): void
  /** Whether the transaction must be synced although only leases changed. */
  takeMustSync(): boolean
  /** What is known of leases may not be so any more: another process has written, or something was undone. */
  forget(): void
}

/** Fences are allotted in blocks of so many. */
const BLOCK = 1000
/** A lease that ran out is forgotten after this long; until then its holder may still write, if nobody else came. */
const KEEP_MS = 24 * 60 * 60_000
/**
 * Prepares the statements of one connection. A lease is not synced, so a power cut may lose it together with the fence that was
 * counted. But no fence at or above `fence_limit` is ever given out, that limit is synced before, and each connection begins at the
 * limit it finds: what comes after a power cut is above all that came before it.
 */
export function createLeaseTable(db: DatabaseSync): LeaseTable {
  const s = statements(db)
  // whoever writes under a lease does so again and again; 0: nobody has it
  const known = new RowCache<number>()
  let mustSync = false
  const nextFence = createFences(s, () => {
    mustSync = true
    known.clear()
  })
  const fenceOf = (lease: string) => known.get(lease) ?? known.keep(lease, Number(s.find.get(lease)?.fence ?? 0))
  return {
    acquire(lease, holder, ttlMs) {
      const now = Date.now()
      const there = s.find.get(lease)
      if (there && Number(there.expires) > now) return [0, Number(there.expires)]
      const fence = nextFence()
      s.hold.run(lease, holder, fence, now + ttlMs)
      known.keep(lease, fence)
      return [fence, now + ttlMs]
    },
    renew(lease, fence, ttlMs) {
      const now = Date.now()
      if (s.renew.run(now + ttlMs, lease, fence, now).changes === 0) throw new Refusal('STORE_FENCED', lease, fence)
      return [fence, now + ttlMs]
    },
    release(lease, fence) {
      s.release.run(lease, fence)
      known.delete(lease)
      return []
    },
    releaseHolder(prefix) {
      s.releaseHolder.run(prefix, prefix)
      known.clear()
      return []
    },
    check(lease, fence) {
      if (fenceOf(lease) !== fence) throw new Refusal('STORE_FENCED', lease, fence)
    },
    takeMustSync() {
      const was = mustSync
      mustSync = false
      return was
    },
    forget() {
      known.clear()
      nextFence.forget()
    },
  }
}

/** Numbers for leases, each above all before; `raised` hears when one of a new block is given, and leases that nobody needs were forgotten. */
function createFences(s: ReturnType<typeof statements>, raised: () => void) {
  let floor: number | undefined
  // as the file has them
  let [last, limit]: (number | undefined)[] = []
  const counter = (name: string) => Number(s.counter.get(name)!.value)
  const begin = (from: number) => {
    s.forget.run(Date.now() - KEEP_MS)
    raise(from + BLOCK)
    return from + 1
  }
  const raise = (to: number) => {
    s.setCounter.run((limit = to), 'fence_limit')
    raised()
  }
  const next = () => {
    floor ??= begin((limit ??= counter('fence_limit')))
    last = Math.max((last ?? counter('fence')) + 1, floor)
    s.setCounter.run(last, 'fence')
    if (last >= (limit ??= counter('fence_limit'))) raise(last + BLOCK)
    return last
  }
  const forget = () => {
    last = limit = undefined
  }
  return Object.assign(next, { forget })
}

const statements = (db: DatabaseSync) => ({
  counter: db.prepare('SELECT value FROM counters WHERE name = ?'),
  setCounter: db.prepare('UPDATE counters SET value = ? WHERE name = ?'),
  find: db.prepare('SELECT fence, expires FROM leases WHERE name = ?'),
  hold: db.prepare('INSERT OR REPLACE INTO leases(name, holder, fence, expires) VALUES (?, ?, ?, ?)'),
  renew: db.prepare('UPDATE leases SET expires = ? WHERE name = ? AND fence = ? AND expires > ?'),
  release: db.prepare('DELETE FROM leases WHERE name = ? AND fence = ?'),
  releaseHolder: db.prepare('DELETE FROM leases WHERE substr(holder, 1, length(?)) = ?'),
  forget: db.prepare('DELETE FROM leases WHERE expires < ?'),
})
