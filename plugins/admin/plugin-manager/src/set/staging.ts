import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '@svc/core'
import type { BuiltSet, PluginCandidate, StagedChange } from './change-types.ts'
import { setUnbuilt } from './errors.ts'
import { keepFormer, sweepFormer } from './former.ts'
import { holdSet, removeEmpty } from './hold.ts'
import { byName, checkedLock, type Lock, type LockedPlugin, lockFile, putInForce, setsOf, settledLock } from './lock.ts'

/** The folder of one change. Its disposal or the next change removes it. */
export interface Staging {
  /** Id of the set that is built in `set`. */
  readonly id: string
  readonly set: string
  /** A folder for temporary files. */
  readonly work: string
  /** Moves the complete set to its place; returns its folder. */
  settle(): Promise<string>
  /** Removes the prepared files, and the moved set unless `keep`. */
  remove(keep: boolean): Promise<void>
}

const stagingOf = (home: string) => join(home, 'plugins', 'staging')

export function createStaging(home: string): Staging {
  const id = `${Date.now().toString(36)}-${randomBytes(4).toString('hex')}`
  const root = join(stagingOf(home), id)
  const [set, work, settled] = [join(root, 'set'), join(root, 'work'), join(setsOf(home), id)]
  mkdirSync(work, { recursive: true, mode: 0o700 })
  return {
    id,
    set,
    work,
    async settle() {
      mkdirSync(setsOf(home), { recursive: true, mode: 0o700 })
      await rename(set, settled)
      return settled
    },
    async remove(keep) {
      await gone(root)
      if (!keep) await gone(settled)
      tidy(home)
    },
  }
}

const gone = (path: string) => rm(path, { recursive: true, force: true, maxRetries: 10 })

function tidy(home: string): void {
  removeEmpty(stagingOf(home))
  removeEmpty(setsOf(home))
}

/**
 * Removes leftovers of interrupted changes, and sets that are neither in effect nor the former one. `current` is the running
 * change. Only the holder of the set may call it.
 */
export async function sweep(home: string, keep: Pick<Lock, 'set' | 'former'>, current?: string): Promise<void> {
  const kept = new Set([keep.set, keep.former])
  const sets = (await namesIn(setsOf(home))).filter(name => !kept.has(name)).map(name => join(setsOf(home), name))
  const staged = (await namesIn(stagingOf(home))).filter(name => name !== current).map(name => join(stagingOf(home), name))
  for (const path of [...sets, ...staged, ...(await halfLocks(home))]) await gone(path)
  tidy(home)
}

/** Temporary files of the lock. */
async function halfLocks(home: string): Promise<string[]> {
  const file = lockFile(home)
  const names = (await namesIn(dirname(file))).filter(
    name => name.startsWith(`${basename(file)}.`) && /\.[0-9a-f-]{36}$/.test(name)
  )
  return names.map(name => join(dirname(file), name))
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** A new set in its place that is not in effect. */
export interface NewSet extends BuiltSet {
  readonly set: string
  readonly kept: readonly LockedPlugin[]
  readonly dependencies: Lock['dependencies']
}

export interface Stage {
  readonly home: string
  readonly before: Lock
  readonly candidates: readonly PluginCandidate[]
  readonly removed: readonly LockedPlugin[]
  readonly isEmpty: boolean
  readonly staging: Staging
  readonly hold: Disposable
  readonly make: () => Promise<NewSet>
  readonly notify: (step: 'commit') => void
}

/** The steps from a plan to its commit and back, for installs and bundles. */
export function createStagedChange({ home, before, staging, hold, make, notify, ...shown }: Stage): StagedChange {
  const inTurn = turns()
  let built: NewSet | undefined
  let committed = false
  async function commit(plugins: readonly LockedPlugin[], holds?: () => Promise<boolean>): Promise<Lock> {
    if (built === undefined) throw setUnbuilt()
    notify('commit')
    const lock = lockOf(before, built, plugins)
    await keepFormer(home, before, lock)
    const inForce = await putInForce(home, before, lock, holds)
    committed = inForce === lock
    if (committed) await sweep(home, lock, staging.id)
    await sweepFormer(home, inForce)
    return inForce
  }
  async function remove(): Promise<void> {
    using _held = hold
    await staging.remove(committed)
  }
  let removed: Promise<void> | undefined
  return {
    before,
    ...shown,
    build: () =>
      inTurn(async () => {
        built ??= await make()
        return { folder: built.folder, plugins: built.plugins }
      }),
    commit: (plugins, holds) => inTurn(() => commit(plugins, holds)),
    [Symbol.asyncDispose]: () => (removed ??= inTurn.last(remove)),
  }
}

/** Runs tasks in order, and none after disposal. Otherwise a disposal during the commit would remove a set in effect. */
function turns() {
  let turn: Promise<unknown> = Promise.resolve()
  let isOver = false
  const queue = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work)
    turn = result.catch(() => {}) // the caller gets the error
    return result
  }
  const inTurn = <T>(work: () => Promise<T>) => (isOver ? Promise.reject<T>(setUnbuilt()) : queue(work))
  const last = (work: () => Promise<void>) => {
    isOver = true
    return queue(work)
  }
  return Object.assign(inTurn, { last })
}

function lockOf(before: Lock, { set, kept, plugins: drafts, dependencies }: NewSet, plugins: readonly LockedPlugin[]): Lock {
  const chosen = drafts.map(draft => chosenFor(draft, plugins))
  if (plugins.length !== drafts.length) throw setUnbuilt()
  const former = set === before.set ? before.former : before.set
  return {
    version: 1,
    set,
    ...(former ? { former } : {}),
    plugins: [...kept, ...chosen].sort(byName),
    dependencies,
  }
}

/** The built facts are not the user's choice. */
function chosenFor(draft: LockedPlugin, plugins: readonly LockedPlugin[]): LockedPlugin {
  const choice = plugins.find(plugin => plugin.name === draft.name)
  if (choice === undefined) throw setUnbuilt()
  const { name, version, origin, integrity, files, scripts } = draft
  const { isolation, enabled, permissions, values, trusted, declares, commands } = choice
  return {
    name,
    version,
    origin,
    integrity,
    files,
    isolation,
    enabled,
    permissions,
    ...(values === undefined ? {} : { values }),
    scripts,
    trusted,
    ...(declares === undefined ? {} : { declares }),
    ...(commands === undefined ? {} : { commands }),
  }
}

/**
 * Changes the entries of installed plugins (enabled, isolation, permissions), not their files. `change` returns the new lock,
 * or the same one for no change. `holds` tries it, as in `StagedChange.commit`. Resolves with the lock in effect. Throws
 * PLUGIN_SET_BUSY, LOCK_INVALID, and the errors of `holds`.
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

/**
 * Removes every set except the one in effect, including the former one. Call it only when no server reads it. Throws
 * PLUGIN_SET_BUSY, LOCK_INVALID.
 */
export async function sweepSets(home: string): Promise<void> {
  using _held = await holdSet(home, 'tidying up')
  const { set } = await settledLock(home)
  await sweep(home, { set })
}
