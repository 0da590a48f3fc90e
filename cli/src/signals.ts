import { closeSync, openSync } from 'node:fs'

const FORCED = 130
/** npm repeats the signal of the terminal to its children. */
const ECHO_MS = process.env.npm_lifecycle_event === undefined ? 0 : 500

/** The actions of signals. */
export interface SignalActions {
  /** Whether the process was started on a terminal. */
  readonly hadTerminal: boolean
  /** Announces the drain; the returned function announces the end. */
  readonly draining: () => (() => void) | undefined
  /** Called once to drain, a second time to end at once. */
  readonly stop: (leaveMs?: number) => Promise<void>
  readonly reload: () => void
}

/** The signal handlers of a server. */
export interface Signals {
  /** Does the same as the first SIGTERM; `leaveMs`: instead of `server.shutdown_delay`. */
  readonly stop: (leaveMs?: number) => void
  /** Resolves with the exit code: 0, or 130 after a forced end. */
  readonly ended: Promise<number>
  /** Whether a signal has asked the server to end. */
  readonly asked: () => boolean
  readonly forget: () => void
}

/** The first SIGINT or SIGTERM drains, the second ends at once. SIGHUP reloads, or drains if the terminal has gone. */
export function takeSignals({ hadTerminal, draining, stop: end, reload }: SignalActions): Signals {
  const ended = Promise.withResolvers<number>()
  let since: number | undefined
  let forced = false
  const stop = (leaveMs?: number) => {
    if (since !== undefined && performance.now() - since < ECHO_MS) return
    forced = since !== undefined
    since ??= performance.now()
    const over = forced ? undefined : draining()
    void end(leaveMs).then(() => {
      if (!forced) over?.()
      ended.resolve(0)
    })
    if (forced) ended.resolve(FORCED)
  }
  const hup = () => (hadTerminal && isTerminalGone() ? stop() : reload())
  const taken = [['SIGINT', () => stop()] as const, ['SIGTERM', () => stop()] as const, ['SIGHUP', hup] as const]
  for (const [signal, act] of taken) process.on(signal, act)
  return {
    stop,
    ended: ended.promise,
    asked: () => since !== undefined,
    forget: () => taken.forEach(([signal, act]) => process.off(signal, act)),
  }
}

function isTerminalGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}

/**
 * Ends the process quietly with 0 when the reader of the standard output has gone: `svc … | head -1` has succeeded. With 141,
 * the code of SIGPIPE, `set -o pipefail` would fail the whole line. Without this, oclif waits for a drain that never comes.
 */
export function endWithReader(): void {
  process.stdout.on('error', leave)
  process.stderr.on('error', stay)
}

/** Makes a server continue when the reader of its output has gone. */
export function outliveReader(): void {
  process.stdout.off('error', leave).on('error', stay)
  process.stderr.on('error', stay)
}

function leave(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
}

const stay = () => {}
