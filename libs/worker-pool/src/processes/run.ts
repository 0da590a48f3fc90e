import { type ChildOptions, type Exit, startChild } from './child.ts'
import { drained, gather, type CapturedOutput } from './output.ts'

export interface RunOptions extends ChildOptions {
  /** Its whole standard input. */
  readonly input?: string | Uint8Array
  /** Maximum milliseconds of the run. */
  readonly timeoutMs: number
  /** Bytes to keep of each of its two outputs. */
  readonly most: number
  /** Bytes of both outputs after which the process is killed: it would probably never stop. */
  readonly floodBytes: number
}

export interface RunResult extends Exit {
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
  /** Why the process was ended, if it did not exit by itself. */
  readonly stopped?: 'timeout' | 'flood'
  readonly durationMs: number
}

/** Runs a process to its end. Throws CHILD_NOT_STARTED, and the reason of the signal once all processes have ended. */
export async function runChild(options: RunOptions): Promise<RunResult> {
  const begun = performance.now()
  await using child = await startChild(options)
  let stopped: RunResult['stopped']
  let left = options.floodBytes
  const stop = (why: 'timeout' | 'flood') => {
    stopped ??= why
    if (why === 'flood') child.kill()
    // the disposal below reports a process that does not exit
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
