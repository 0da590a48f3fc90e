import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '@svc/core'

/**
 * Folders that exist on this machine only while a sandbox has something mounted there, kept in a folder that all processes of svc share.
 * A mount ends when its mount point is removed, in every sandbox. So the last process that uses a mount point removes it, and one that was killed
 * leaves a record, by which the next process removes what it left.
 */
export interface MountPoints {
  /** Whether a path is a mount point of a sandbox, now or of one that was killed. */
  has(path: string): boolean
  /** Records that a sandbox is about to mount something at each path; the answer takes the record back and removes what nothing else uses. */
  hold(paths: readonly string[]): Promise<() => Promise<void>>
  /** Removes what killed processes left. */
  sweep(): Promise<void>
}

/** The file in a record that says which path it is about; the other files are its holders. */
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
        // what lies in another one goes first
        const deepest = records
          .map(name => join(folder, name))
          .toSorted((one, other) => pathIn(other).length - pathIn(one).length)
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
 * Whether a file takes the place of what is missing: git fails where `commondir` is a folder, or empty. With this text it is what a repository without one
 * says, here and in the sandbox.
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

/** Removes a mount point, and the record of it, where no living process holds it. Only an empty folder, or a file of ours, is ever removed. */
function removeUnused(record: string): void {
  if (!existsSync(record)) return
  const holders = readdirSync(record).filter(name => name !== PATH)
  if (holders.some(name => isAlive(Number.parseInt(name, 10)))) return
  const path = pathIn(record)
  try {
    if (isFile(path)) removeFile(path)
    else if (path !== '') rmdirSync(path)
  } catch (error) {
    // It was never made, or something lies in it that is not ours. Where it cannot be removed now, it is tried again later.
    if (!/^(ENOENT|ENOTDIR|ENOTEMPTY|EEXIST)$/.test(codeOf(error) ?? '')) return
  }
  rmSync(record, { recursive: true, force: true })
}

/** Whether a process still works: one that has ended and was not waited for yet does not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Runs work that takes no time while no other process does. A lock that a killed process left is taken over. */
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
