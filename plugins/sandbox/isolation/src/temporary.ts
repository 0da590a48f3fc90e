import { lstat, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '@svc/core'

/** The use of a folder: the socket of a proxy, or the home of a plugin that runs without a sandbox. */
type Purpose = 'egress' | 'plugin'

/** `svc-egress-4026531836-1234-Xa81Kp`: the purpose, the namespace of process ids, and the id of the process that made the folder. */
const NAME = /^svc-(?:egress|plugin)-(\d+)-(\d+)-[A-Za-z0-9]{6}$/

const made = new Set<string>()
let space: Promise<string> | undefined

/** A process id is unique within its namespace only, and containers can share a folder for temporary files. */
async function readSpace(): Promise<string> {
  const target = await readlink('/proc/self/ns/pid').catch(() => '')
  return /\d+/.exec(target)?.[0] ?? '0'
}

/** Makes a folder that only this user can read. A later process recognizes it by its name when this process has ended. */
export async function makeTemporary(purpose: Purpose): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `svc-${purpose}-${await (space ??= readSpace())}-${process.pid}-`))
  made.add(folder)
  return folder
}

export async function removeTemporary(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  made.delete(folder)
}

/** Removes the folders that ended processes have left. Links, folders of other users and those of running processes stay. */
export async function sweepTemporary(): Promise<void> {
  const own = await (space ??= readSpace())
  for (const name of await readdir(tmpdir())) {
    const [, where, pid] = NAME.exec(name) ?? []
    const folder = join(tmpdir(), name)
    if (where !== own || made.has(folder) || (await isAlive(Number(pid))) || !(await isOwnFolder(folder))) continue
    await rm(folder, { recursive: true, force: true })
  }
}

/** A folder with the id of this process that this process has not made is an older process's: ids repeat in a container. */
async function isAlive(pid: number): Promise<boolean> {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
  // a zombie: the process has ended, and its parent has not waited for it
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  return !/\) [ZX]/.test(stat)
}

async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  return found?.isDirectory() === true && found.uid === process.getuid?.()
}
