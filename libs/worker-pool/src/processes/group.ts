import { readdirSync, readFileSync } from 'node:fs'
import { setImmediate as breath, setTimeout as sleep } from 'node:timers/promises'

/** The variable by which what a child started is known, wherever it went: it is inherited. */
export const MARK = 'SVC_CHILD'

const ROUNDS = 100
const ROUND_MS = 5
/** How many processes are looked at before others have their turn. No disk is behind these files: to read them at once costs a tenth of asking for them. */
const BATCH = 64

/** Sends a signal to a whole group of processes; one that is gone already is none. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH: nobody is left. EPERM (macOS): only such are left as have ended.
  }
}

/** Kills what an ended child has left behind: its group, and what left the group but still carries the mark. Where there is no /proc the group is all that can be known. */
export async function sweep(pid: number, mark: string): Promise<void> {
  signalGroup(pid, 'SIGKILL')
  for (let round = 0; round < ROUNDS; round++) {
    const left = await leftBy(pid, mark)
    if (left.length === 0) return
    for (const one of left) kill(one)
    await sleep(ROUND_MS)
  }
}

/** How often it is looked whether a process has stopped: a few milliseconds. */
const LOOKS = 200

/**
 * Kills a process that has a process namespace, and the first one in there, whose end is the end of all others. That one dies with its parent only once it has
 * asked the kernel for it, which bubblewrap does late: killed in its first milliseconds alone, it would leave behind what then runs its program. It is stopped
 * before it is asked for its children, for it may be about to have one.
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
    // It ended by itself.
  }
}

async function leftBy(pid: number, mark: string): Promise<number[]> {
  const left: number[] = []
  for (const [at, one] of processes().entries()) {
    if (at % BATCH === BATCH - 1) await breath()
    if (isLeftBy(one, pid, mark)) left.push(one)
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

function isLeftBy(one: number, pid: number, mark: string): boolean {
  // Who has the child's own number now is somebody else: the child has ended.
  if (one === pid || one === process.pid) return false
  const [state = '', , group] = statOf(one)
  if (state === '' || /[ZX]/.test(state)) return false
  return Number(group) === pid || read(`/proc/${one}/environ`).includes(`${MARK}=${mark}\0`)
}

/** State, parent, group and more. */
const statOf = (pid: number) => read(`/proc/${pid}/stat`).split(') ').at(-1)!.split(' ')

/** Empty where it is gone, or another user's. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
