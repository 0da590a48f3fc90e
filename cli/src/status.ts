import { abortOnInterrupt } from './interrupt.ts'
import { isGood, isLive, readStatus } from './server-status.ts'
import { statusFacts } from './status-facts.ts'
import { statusText } from './status-text.ts'
import { watchStatus, type WatchOptions } from './status-watch.ts'

export interface StatusOptions extends WatchOptions {
  readonly watch: boolean
  /** Nothing but whether it answers. */
  readonly live: boolean
}

/** `svc status`; resolves with the exit code: 1 when the server is unhealthy or does not tell its figures, 0 when the watch is ended. */
export async function status(options: StatusOptions): Promise<number> {
  if (options.live) return (await isLive(options)) ? 0 : 1
  if (options.watch) return await untilEnded(signal => watchStatus(options, signal))
  const found = await readStatus(options)
  process.stdout.write(`${options.json ? JSON.stringify(statusFacts(found), null, 2) : statusText(found)}\n`)
  return isGood(found) ? 0 : 1
}

/** Runs until Ctrl-C, SIGTERM, or whoever reads along has enough. */
export async function untilEnded(run: (signal: AbortSignal) => Promise<void>): Promise<number> {
  using interrupt = abortOnInterrupt()
  const ending = new AbortController()
  const end = () => ending.abort()
  process.once('SIGTERM', end)
  process.stdout.on('error', end)
  try {
    await run(AbortSignal.any([interrupt.signal, ending.signal]))
    return 0
  } finally {
    process.off('SIGTERM', end)
  }
}
