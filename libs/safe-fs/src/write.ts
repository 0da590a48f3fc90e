import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { link, lstat, mkdir, open, rename, unlink } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import { type Folder, openFolderIn, openToChange, refuseChangeIn } from './opened.ts'
import type { Roots, Target } from './roots.ts'

/** What a file shall be. */
export interface Content {
  readonly bytes: Uint8Array
  /** The file that it takes the place of; without it there must be none. */
  readonly instead?: { readonly mode: number; readonly uid: number; readonly gid: number }
  /** Asked when all is written, just before the name is taken; throws to leave everything as it was. */
  check?(): Promise<void>
}

const NEW_MODE = 0o666
const PERMISSIONS = 0o777

/**
 * Writes a file beside its place, brings it to the disk and gives it its name in one step: who reads sees the old or the new one, whole.
 * A link at its place is replaced, never followed. Throws EEXIST where there is something already.
 */
export async function putFile(folder: Folder, name: string, content: Content, signal: AbortSignal): Promise<void> {
  const temporary = folder.at(`.svc-${randomUUID()}.tmp`)
  try {
    await writeNew(temporary, content, signal)
    signal.throwIfAborted()
    await content.check?.()
    await (content.instead ? rename(temporary, folder.at(name)) : claim(temporary, folder.at(name)))
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw error
  }
  await folder.handle.sync()
}

async function writeNew(path: string, { bytes, instead }: Content, signal: AbortSignal): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const handle = await open(path, flags, instead ? 0o600 : NEW_MODE)
  try {
    await handle.writeFile(bytes, { signal })
    if (instead) {
      // Only root may give a file away; the new one is the writer's own then.
      await handle.chown(instead.uid, instead.gid).catch(() => {})
      await handle.chmod(instead.mode & PERMISSIONS)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Gives a file or link another name that must be free: nothing is ever replaced. Throws EEXIST. */
export async function claim(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK)$/.test(codeOf(error) ?? '')) throw error
    // A file system without hard links: between the look and the step another one may come.
    if (await lstat(to).catch(() => undefined)) throw Object.assign(new Error('it exists'), { code: 'EEXIST' })
    return await rename(from, to)
  }
  await unlink(from)
}

/** Opens the folder of a target to change what lies in it; makes the folders on the way that are missing. Throws PATH_PROTECTED before it makes any. */
export async function openForTarget(roots: Roots, { folder, steps, name, shown }: Target, signal: AbortSignal): Promise<Folder> {
  let at = await openToChange(roots, { ...folder, shown }, [...steps, name].join('/'))
  for (const step of steps) {
    const above = at
    try {
      signal.throwIfAborted()
      await mkdir(above.at(step)).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error
      })
      at = await openFolderIn(above, step, shown)
    } finally {
      await above.handle.close()
    }
  }
  // a folder on the way may have been put there by another program meanwhile
  if (steps.length > 0) await refuseChangeIn(at, name, shown)
  return at
}
