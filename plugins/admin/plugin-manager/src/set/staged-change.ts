import type { BuiltSet, Candidate, StagedChange } from './change-types.ts'
import { setUnbuilt } from './errors.ts'
import { putInForce } from './lock.ts'
import type { Lock, LockedPlugin } from './lock-types.ts'
import { byName } from './names.ts'
import { type Staging, sweep } from './staging.ts'

/** A new set that stands, and is not in force. */
export interface NewSet extends BuiltSet {
  readonly set: string
  readonly kept: readonly LockedPlugin[]
  readonly dependencies: Lock['dependencies']
}

export interface Stage {
  readonly home: string
  readonly before: Lock
  readonly candidates: readonly Candidate[]
  readonly removed: readonly LockedPlugin[]
  readonly isEmpty: boolean
  readonly staging: Staging
  readonly hold: Disposable
  readonly make: () => Promise<NewSet>
  readonly tell: (step: 'commit') => void
}

/** The road from what is planned to what is in force, and back: the same for an install and for a bundle. */
export function createStagedChange({ home, before, staging, hold, make, tell, ...shown }: Stage): StagedChange {
  const inTurn = turns()
  let built: NewSet | undefined
  let committed = false
  async function commit(plugins: readonly LockedPlugin[], holds?: () => Promise<boolean>): Promise<Lock> {
    if (built === undefined) throw setUnbuilt()
    tell('commit')
    const lock = lockOf(before, built, plugins)
    const inForce = await putInForce(home, before, lock, holds)
    committed = inForce === lock
    if (committed) await sweep(home, lock, staging.id)
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

/** One after the other; nothing after the last. What is disposed of while it commits would otherwise be in force and gone. */
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

/** What was built is not for anybody to choose. */
function chosenFor(draft: LockedPlugin, plugins: readonly LockedPlugin[]): LockedPlugin {
  const choice = plugins.find(one => one.name === draft.name)
  if (choice === undefined) throw setUnbuilt()
  const { name, version, origin, integrity, files, scripts } = draft
  const { isolation, enabled, permissions, trusted, declares, commands } = choice
  return {
    name,
    version,
    origin,
    integrity,
    files,
    isolation,
    enabled,
    permissions,
    scripts,
    trusted,
    ...(declares === undefined ? {} : { declares }),
    ...(commands === undefined ? {} : { commands }),
  }
}
