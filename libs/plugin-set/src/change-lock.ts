import { existsSync } from 'node:fs'
import { filesMissing } from './errors.ts'
import { holdSet } from './hold.ts'
import { checkedLock, readLock, setFolder, writeLock } from './lock.ts'
import type { Lock } from './lock-types.ts'
import { byName } from './names.ts'
import { sweep } from './staging.ts'

/**
 * Changes what is said of installed plugins (enabled, isolation, permissions), no files. `change` returns the new lock, or the same for no change. Throws PLUGIN_SET_BUSY, LOCK_INVALID.
 */
export async function changeLock(home: string, change: (lock: Lock) => Lock): Promise<Lock> {
  using _held = await holdSet(home, 'a change of settings')
  const before = await readLock(home)
  const after = change(before)
  if (after === before) return before
  const lock = checkedLock(structuredClone({ ...after, plugins: [...after.plugins].sort(byName) }))
  await writeLock(home, lock)
  return lock
}

/** Puts an earlier lock in force again, as `StagedChange.before` was; for after the disposal. Throws PLUGIN_SET_BUSY, and PLUGIN_FILES_MISSING where its set is swept already. */
export async function rollback(home: string, previous: Lock): Promise<Lock> {
  using _held = await holdSet(home, 'a way back')
  const folder = setFolder(home, previous)
  if (folder !== undefined && !existsSync(folder))
    throw filesMissing(undefined, 'the plugins that were installed before are swept already')
  await writeLock(home, previous)
  return previous
}

/** Removes every set but the one in force, the former one too: for when no server reads it. Throws PLUGIN_SET_BUSY, LOCK_INVALID. */
export async function sweepSets(home: string): Promise<void> {
  using _held = await holdSet(home, 'tidying up')
  const { set } = await readLock(home)
  await sweep(home, { set })
}
