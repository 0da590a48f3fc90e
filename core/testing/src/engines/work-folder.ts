import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** As root, engines run as the user and group without rights (65534 on Linux): PostgreSQL and PgBouncer reject root. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 }
export const engineUser: { uid?: number; gid?: number } = process.getuid?.() === 0 ? UNPRIVILEGED : {}

/** That user must reach the folder, and the TMPDIR of root can be closed to others. */
function baseFolder(): string {
  const isOpen = (path: string): boolean => (statSync(path).mode & 0o001) !== 0 && (path === '/' || isOpen(dirname(path)))
  return engineUser.uid === undefined || isOpen(tmpdir()) ? tmpdir() : '/var/tmp'
}

function giveToEngine(path: string): void {
  if (engineUser.uid !== undefined) chownSync(path, engineUser.uid, engineUser.gid!)
}

/** Writes a file that only the user of the engines can read. Returns its path. */
export function writeEngineFile(folder: string, name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  giveToEngine(path)
  return path
}

/**
 * Runs until its input ends, which is when this process ends in whatever way. Then ends the servers that still run and removes
 * the folder. `running` has a file for each server: its name is the process id, its content the signal that ends it.
 */
const GUARD = `cat >/dev/null
cd "$1/running" || exit 0
for pid in *; do [ -f "$pid" ] && kill -s "$(cat "$pid")" "$pid"; done
for pid in *; do
  tries=0
  while [ -f "$pid" ] && [ $tries -lt 50 ] && kill -0 "$pid"; do sleep 0.1; tries=$((tries + 1)); done
  [ -f "$pid" ] && kill -s KILL "$pid"
done
cd / && rm -rf "$1"`

interface WorkFolder {
  readonly path: string
  readonly guard: ChildProcess
}
let workFolder: WorkFolder | undefined
let count = 0

/** The folder of all engines of this process. It is removed when the process ends. */
function openWorkFolder(): WorkFolder {
  if (workFolder) return workFolder
  const path = mkdtempSync(join(baseFolder(), 'svc-engines-'))
  giveToEngine(path)
  mkdirSync(join(path, 'running'))
  // A session of its own: Ctrl-C ends the test, not the guard.
  const guard = spawn('/bin/sh', ['-c', GUARD, 'svc-engines', path], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  })
  guard.unref()
  ;(guard.stdin as unknown as { unref(): void }).unref()
  guard.stdin!.on('error', () => {})
  workFolder = { path, guard }
  return workFolder
}

/** A new folder of an engine, which belongs to its user. */
export function engineFolder(name: string): string {
  const folder = join(openWorkFolder().path, `${name}-${++count}`)
  mkdirSync(folder, { mode: 0o700 })
  giveToEngine(folder)
  return folder
}

/** Ends the server with this process, with this signal. Returns a function to call when the server has ended. */
export function guardServer(pid: number, signal: 'QUIT' | 'KILL'): () => void {
  const file = join(openWorkFolder().path, 'running', String(pid))
  writeFileSync(file, signal)
  return () => rmSync(file, { force: true })
}
