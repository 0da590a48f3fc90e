import { abortOnInterrupt } from './interrupt.ts'
import { isGood, readStatus } from './server-status.ts'
import { statusFacts } from './status-facts.ts'
import { statusText } from './status-text.ts'
import { watchStatus, type WatchOptions } from './status-watch.ts'

export interface StatusOptions extends WatchOptions {
  readonly watch: boolean
}

/** `svc status`; resolves with the exit code: 1 when the server is unhealthy or does not tell its figures, 0 when the watch is ended. */
export async function status(options: StatusOptions): Promise<number> {
  if (options.watch) return await watch(options)
  const found = await readStatus(options)
  process.stdout.write(`${options.json ? JSON.stringify(statusFacts(found), null, 2) : statusText(found)}\n`)
  return isGood(found) ? 0 : 1
}

async function watch(options: WatchOptions): Promise<number> {
  using interrupt = abortOnInterrupt()
  const ending = new AbortController()
  const end = () => ending.abort()
  process.once('SIGTERM', end)
  // whoever reads along may have enough
  process.stdout.on('error', end)
  try {
    await watchStatus(options, AbortSignal.any([interrupt.signal, ending.signal]))
    return 0
  } finally {
    process.off('SIGTERM', end)
  }
}
