import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { codeOf } from '@svc/core'
import { removeEmpty } from './hold.ts'
import { lockFile, setsOf } from './lock.ts'
import type { Lock } from './lock-types.ts'

/** Where one change is prepared: gone with it, or swept by the next. */
export interface Staging {
  /** Of the set that is built in `set`. */
  readonly id: string
  readonly set: string
  /** For what is needed on the way. */
  readonly work: string
  /** Puts the set in its place, whole; returns its folder. */
  settle(): Promise<string>
  /** Takes away what was prepared, and the set where it has settled, unless `keep`. */
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

/** Removes what interrupted changes have left, and sets that neither are in force nor were just before. `current` is the change that runs. To be called by who holds the set. */
export async function sweep(home: string, keep: Pick<Lock, 'set' | 'former'>, current?: string): Promise<void> {
  const kept = new Set([keep.set, keep.former])
  const sets = (await namesIn(setsOf(home))).filter(name => !kept.has(name)).map(name => join(setsOf(home), name))
  const staged = (await namesIn(stagingOf(home))).filter(name => name !== current).map(name => join(stagingOf(home), name))
  for (const path of [...sets, ...staged, ...(await halfLocks(home))]) await gone(path)
  tidy(home)
}

/** What a lock was written to before it took its place. */
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
