import { type ChildProcess, spawn } from 'node:child_process'
import { codeOf } from '@svc/core'
import { gitFailed, gitMissing, gitTimeout } from './errors.ts'

/** How a git command is run. */
export interface GitRun {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** The most bytes of its answer; what comes after them is left out, and git is ended. */
  readonly most: number
  /** What it reads. */
  readonly input?: string | Buffer
}

export interface GitAnswer {
  readonly stdout: Buffer
  readonly stderr: string
  readonly truncated: boolean
  /** Absent when it was ended. */
  readonly code?: number
}

const WORDS_BYTES = 8192
/** How long git has to take its lock files away. */
const GRACE_MS = 1000

/** Runs git and all that it starts as one group of processes; ends the group when the signal says so, the time is up, or there is enough output. */
export async function runGit(args: readonly string[], run: GitRun): Promise<GitAnswer> {
  run.signal.throwIfAborted()
  const child = spawn('git', [...args], {
    cwd: run.cwd,
    env: run.env,
    detached: true,
    stdio: [run.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  const late = AbortSignal.timeout(run.timeoutMs)
  const stop = AbortSignal.any([run.signal, late])
  const ended = endOf(child)
  const end = ender(child)
  stop.addEventListener('abort', end.now, { once: true })
  try {
    const out = gather(child.stdout!, run.most, end.now)
    const words = gather(child.stderr!, WORDS_BYTES, () => {})
    // Who ends without reading must not end us.
    child.stdin?.on('error', () => {}).end(run.input)
    const code = await ended
    run.signal.throwIfAborted()
    if (late.aborted) throw gitTimeout(run.timeoutMs)
    const { bytes, truncated } = out()
    return { stdout: bytes, truncated, stderr: words().bytes.toString(), ...(code === null ? {} : { code }) }
  } finally {
    stop.removeEventListener('abort', end.now)
    end.forget()
  }
}

function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('error', error =>
      reject(
        /^(ENOENT|EACCES)$/.test(codeOf(error) ?? '') ? gitMissing() : gitFailed(`it could not be started (${codeOf(error)})`)
      )
    )
    child.on('close', resolve)
  })
}

/** Ends the group: kindly first, so that lock files go; then for good. */
function ender(child: ChildProcess) {
  let timer: NodeJS.Timeout | undefined
  const kill = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal)
    } catch {
      // It is gone already.
    }
  }
  return {
    now: () => {
      if (timer) return
      kill('SIGTERM')
      timer = setTimeout(kill, GRACE_MS, 'SIGKILL')
    },
    forget: () => clearTimeout(timer),
  }
}

/** Gathers at most so many bytes of a stream; `full` is called when there are more. */
function gather(stream: NodeJS.ReadableStream, most: number, full: () => void) {
  const kept: Buffer[] = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    if (size < most) kept.push(chunk.subarray(0, most - size))
    size += chunk.length
    if (size > most) full()
  })
  return () => ({ bytes: Buffer.concat(kept), truncated: size > most })
}
