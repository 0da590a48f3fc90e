import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '@svc/core'

/**
 * Folders that exist on this machine only while a sandbox has something mounted there. All processes of svc record them in a shared folder. Removing a mount
 * point ends its mount in every sandbox. So the last process that uses a mount point removes it. A killed process leaves a record, and the next process
 * removes its mount points.
 */
export interface MountPoints {
  /** Whether a path is a mount point of a running sandbox, or of a killed one. */
  has(path: string): boolean
  /** Records that a sandbox is about to mount something at each path. The returned function deletes the record and removes unused mount points. */
  hold(paths: readonly string[]): Promise<() => Promise<void>>
  /** Removes the mount points of killed processes. */
  sweep(): Promise<void>
}

/** The file of a record that holds its path. Each other file stands for a process that uses it. */
const PATH = 'path'
const [LOCK, RETRY_MS, STALE_MS] = ['lock', 2, 2_000]

export function openMountPoints(folder: string): MountPoints {
  const recordOf = (path: string) => join(folder, createHash('sha256').update(path).digest('hex'))
  const holder = () => `${process.pid}-${randomUUID()}`
  return {
    has: path => existsSync(recordOf(path)),
    async hold(paths) {
      if (paths.length === 0) return async () => {}
      const name = holder()
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      await locked(folder, () => {
        for (const path of paths) {
          mkdirSync(recordOf(path), { recursive: true })
          writeFileSync(join(recordOf(path), PATH), path)
          writeFileSync(join(recordOf(path), name), '')
          if (isFile(path)) makeFile(path)
        }
      })
      return () =>
        locked(folder, () => {
          for (const path of paths.toReversed()) {
            rmSync(join(recordOf(path), name), { force: true })
            removeUnused(recordOf(path))
          }
        })
    },
    async sweep() {
      if (!existsSync(folder)) return
      await locked(folder, () => {
        const records = readdirSync(folder).filter(name => name !== LOCK)
        // nested mount points first
        const deepest = records
          .map(name => join(folder, name))
          .toSorted((item, other) => pathIn(other).length - pathIn(item).length)
        for (const record of deepest) removeUnused(record)
      })
    },
  }
}

const pathIn = (record: string) => {
  try {
    return readFileSync(join(record, PATH), 'utf8')
  } catch {
    return ''
  }
}

/**
 * Whether a file stands in for the missing path. git fails if `commondir` is a folder or empty. With this text it means the same as a missing `commondir`, on
 * this machine and in the sandbox.
 */
export const isFile = (path: string): boolean => basename(path) === 'commondir'
const ITSELF = '.\n'

function makeFile(path: string): void {
  try {
    writeFileSync(path, ITSELF, { flag: 'wx' })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

function removeFile(path: string): void {
  if (readFileSync(path, 'utf8') === ITSELF) rmSync(path)
}

/** Removes a mount point and its record if no running process uses it. It removes only an empty folder, or a file that svc has made. */
function removeUnused(record: string): void {
  if (!existsSync(record)) return
  const holders = readdirSync(record).filter(name => name !== PATH)
  if (holders.some(name => isAlive(Number.parseInt(name, 10)))) return
  const path = pathIn(record)
  try {
    if (isFile(path)) removeFile(path)
    else if (path !== '') rmdirSync(path)
  } catch (error) {
    // the mount point was never made, or holds other files; any other failure is tried again later
    if (!/^(ENOENT|ENOTDIR|ENOTEMPTY|EEXIST)$/.test(codeOf(error) ?? '')) return
  }
  rmSync(record, { recursive: true, force: true })
}

/** Whether a process runs. A zombie does not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Runs short work under a lock that all processes share. It takes over the lock of a killed process. */
async function locked(folder: string, work: () => void): Promise<void> {
  const lock = join(folder, LOCK)
  while (!taken(lock)) await delay(RETRY_MS)
  try {
    work()
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}

function taken(lock: string): boolean {
  try {
    mkdirSync(lock)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (ageOf(lock) > STALE_MS) rmSync(lock, { recursive: true, force: true })
    return false
  }
}

function ageOf(path: string): number {
  try {
    return Date.now() - statSync(path).mtimeMs
  } catch {
    return 0
  }
}
