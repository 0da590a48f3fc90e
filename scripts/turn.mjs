// Allows one process at a time in this folder. Runs on plain Node 20.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'

const lockDir = '.svc-ready.lock'

/**
 * Waits until no other process works here, then takes the turn. `wait` gets the process id of the owner, once. The lock is a
 * folder with a file named by its owner's process id: only one rename onto an absent or empty folder succeeds. `share` adds the
 * id of a child, because a child can outlive its killed parent.
 */
export async function takeTurn(wait) {
  const mine = `${lockDir}.${process.pid}`
  rmSync(mine, { recursive: true, force: true })
  mkdirSync(mine)
  writeFileSync(`${mine}/${process.pid}`, '')
  for (let isTold = false; !isTaken(mine); ) {
    const owner = holder()
    if (owner && !isTold) wait(owner)
    isTold ||= Boolean(owner)
    if (owner) await new Promise(resolve => setTimeout(resolve, 200))
  }
  return {
    share: pid => writeFileSync(`${lockDir}/${pid}`, ''),
    end: () => rmSync(lockDir, { recursive: true, force: true }),
  }
}

function isTaken(mine) {
  try {
    renameSync(mine, lockDir)
    return true
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(error.code)) throw error
    return false
  }
}

/** The id of a running owner. The file of a dead one is removed by name, so that the file of a new owner stays. */
function holder() {
  const owners = existsSync(lockDir) ? readdirSync(lockDir) : []
  for (const owner of owners) {
    if (isAlive(Number(owner), `${lockDir}/${owner}`)) return owner
    rmSync(`${lockDir}/${owner}`, { force: true })
  }
}

function isAlive(pid, file) {
  const quarterHour = 15 * 60_000
  if (pid === process.pid || Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > quarterHour) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}
