import { type ChildOptions, type Exit, startChild } from './child.ts'
import { drained } from './drained.ts'
import { gather, type Kept } from './gather.ts'

export interface RunOptions extends ChildOptions {
  /** What it reads; then its standard input ends. */
  readonly input?: string | Uint8Array
  /** Milliseconds it may take. */
  readonly timeoutMs: number
  /** Bytes that are kept of each of its two outputs. */
  readonly most: number
  /** Bytes of both together after which it is ended: who writes so much will not stop. */
  readonly floodBytes: number
}

export interface RunResult extends Exit {
  readonly stdout: Kept
  readonly stderr: Kept
  /** Why it was ended, where it did not end by itself. */
  readonly stopped?: 'timeout' | 'flood'
  readonly durationMs: number
}

/** Runs a process to its end. Throws CHILD_NOT_STARTED, and what the signal aborted with, then when all is ended. */
export async function runChild(options: RunOptions): Promise<RunResult> {
  const begun = performance.now()
  await using child = await startChild(options)
  let stopped: RunResult['stopped']
  let left = options.floodBytes
  const stop = (why: 'timeout' | 'flood') => {
    stopped ??= why
    if (why === 'flood') child.kill()
    // That it does not end is told by the disposal below.
    else void child.end().catch(() => {})
  }
  const count = (bytes: number) => {
    left -= bytes
    if (left < 0) stop('flood')
  }
  const stdout = gather(child.stdout, options.most, count)
  const stderr = gather(child.stderr, options.most, count)
  child.stdin.end(options.input ?? '')
  const timer = setTimeout(stop, options.timeoutMs, 'timeout')
  try {
    const exit = await child.exited
    await drained(child.stdout)
    options.signal?.throwIfAborted()
    const durationMs = Math.round(performance.now() - begun)
    return { ...exit, stdout: stdout(), stderr: stderr(), durationMs, ...(stopped === undefined ? {} : { stopped }) }
  } finally {
    clearTimeout(timer)
  }
}
