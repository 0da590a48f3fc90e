import { readdirSync, readFileSync } from 'node:fs'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

/** The variable that identifies descendants of a child, even outside its group: processes inherit it. */
export const MARK = 'SVC_CHILD'

const ROUNDS = 100
const ROUND_MS = 5
/** Number of processes to check before the event loop gets a turn. Synchronous reads of these kernel files cost a tenth of asynchronous ones. */
const BATCH = 64

/** Sends a signal to a process group. A group that has ended is ignored. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH: the group has ended. EPERM (macOS): it has only zombies left.
  }
}

/** Kills the descendants of an ended child: its group, and processes that left the group but carry the mark. Without /proc only the group is known. */
export async function sweep(pid: number, mark: string): Promise<void> {
  signalGroup(pid, 'SIGKILL')
  for (let round = 0; round < ROUNDS; round++) {
    const left = await leftBy(pid, mark)
    if (left.length === 0) return
    for (const item of left) kill(item)
    await sleep(ROUND_MS)
  }
}

/** Number of checks whether a process has stopped: a few milliseconds. */
const LOOKS = 200

/**
 * Kills a process that has a process namespace, and the first process of that namespace, whose exit ends all others. bubblewrap is late to bind the life of
 * that process to its parent. A kill of the parent alone in its first milliseconds would leave the child, which then runs the program. The parent is stopped
 * before its children are listed, so that it cannot fork in between.
 */
export function killContained(pid: number): void {
  signalGroup(pid, 'SIGSTOP')
  for (let look = 0; look < LOOKS && /^[RSD]/.test(statOf(pid)[0]!); look++);
  for (const child of read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean)) kill(Number(child))
  signalGroup(pid, 'SIGKILL')
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // the process has ended
  }
}

async function leftBy(pid: number, mark: string): Promise<number[]> {
  const left: number[] = []
  for (const [at, process] of processes().entries()) {
    if (at % BATCH === BATCH - 1) await nextTurn()
    if (isLeftBy(process, pid, mark)) left.push(process)
  }
  return left
}

function processes(): number[] {
  try {
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return [] // no Linux
  }
}

function isLeftBy(item: number, pid: number, mark: string): boolean {
  // the child has ended: another process can have its id now
  if (item === pid || item === process.pid) return false
  const [state = '', , group] = statOf(item)
  if (state === '' || /[ZX]/.test(state)) return false
  return Number(group) === pid || read(`/proc/${item}/environ`).includes(`${MARK}=${mark}\0`)
}

/** State, parent, group and more. */
const statOf = (pid: number) => read(`/proc/${pid}/stat`).split(') ').at(-1)!.split(' ')

/** Returns '' for a file that is gone or belongs to another user. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
