import { holdSet } from './hold.ts'
import { checkedLock, putInForce, settledLock } from './lock.ts'
import type { Lock } from './lock-types.ts'
import { byName } from './names.ts'
import { sweep } from './staging.ts'

/**
 * Changes what is said of installed plugins (enabled, isolation, permissions), no files. `change` returns the new lock, or the same for no change; `holds` tries it, as in
 * `StagedChange.commit`. Resolves with what is in force then. Throws PLUGIN_SET_BUSY, LOCK_INVALID, and what `holds` throws.
 */
export async function changeLock(
  home: string,
  change: (lock: Lock) => Lock,
  holds?: (before: Lock) => Promise<boolean>
): Promise<Lock> {
  using _held = await holdSet(home, 'a change of settings')
  const before = await settledLock(home)
  const after = change(before)
  if (after === before) return before
  const lock = checkedLock(structuredClone({ ...after, plugins: [...after.plugins].sort(byName) }))
  return await putInForce(home, before, lock, holds && (() => holds(before)))
}

/** Removes every set but the one in force, the former one too: for when no server reads it. Throws PLUGIN_SET_BUSY, LOCK_INVALID. */
export async function sweepSets(home: string): Promise<void> {
  using _held = await holdSet(home, 'tidying up')
  const { set } = await settledLock(home)
  await sweep(home, { set })
}
