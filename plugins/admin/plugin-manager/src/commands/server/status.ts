import { counted, errorFacts, errorPage, milliseconds } from '@svc/cli/command'
import { grownSince, summaryOf } from './metrics.ts'
import { type ServerAddress, isGood, isLive, readStatus, type ServerStatus } from './server-status.ts'
import { type Recent, statusFacts, statusText } from './status-text.ts'
import { lookAgain, type Sample, openLiveScreen, untilEnded } from './watch.ts'

export interface StatusOptions extends WatchOptions {
  readonly watch: boolean
  /** Check only whether it answers. */
  readonly live: boolean
}

/**
 * `svc status`; resolves with the exit code: 1 if the server is unhealthy or does not publish its status, 0 at the end of
 * --watch.
 */
export async function status(options: StatusOptions): Promise<number> {
  if (options.live) return (await isLive(options)) ? 0 : 1
  if (options.watch) return await untilEnded(signal => watchStatus(options, signal))
  const found = await readStatus(options)
  process.stdout.write(`${options.json ? JSON.stringify(statusFacts(found), null, 2) : statusText(found)}\n`)
  return isGood(found) ? 0 : 1
}

interface WatchOptions extends ServerAddress {
  /** Seconds between two refreshes. */
  readonly interval: number
  readonly json: boolean
}

type StatusSample = Sample<ServerStatus>

interface View extends Disposable {
  show(look: StatusSample, recent: Recent | undefined): void
}

/** Refreshes until the signal aborts. Throws if the first request fails; later the server can be away for a while. */
async function watchStatus(options: WatchOptions, signal: AbortSignal): Promise<void> {
  using view = viewOf(options)
  await lookAgain(
    () => readStatus(options),
    options.interval,
    signal,
    (now, before) => view.show(now, before && recentOf(before, now))
  )
}

function recentOf({ at, found: then }: StatusSample, { at: end, found: now }: StatusSample): Recent | undefined {
  if (!then?.metrics || !now?.metrics) return undefined
  return { seconds: (end - at) / 1000, summary: summaryOf(grownSince(then.metrics, now.metrics)) }
}

function viewOf({ json, interval }: WatchOptions): View {
  if (json) return lines((status, recent) => JSON.stringify(statusFacts(status, recent)))
  return process.stdout.isTTY ? screen(interval) : lines(lineOf)
}

function screen(interval: number): View {
  const live = openLiveScreen(process.stdout)
  const foot = `every ${interval} s; press Ctrl-C to stop`
  return {
    show({ found: status, error }, recent) {
      live.draw(`${status ? statusText(status, recent) : errorPage(error)}\n\n${foot}`)
    },
    [Symbol.dispose]: () => live[Symbol.dispose](),
  }
}

function lines(text: (status: ServerStatus, recent: Recent | undefined) => string): View {
  return {
    show({ found: status, error }, recent) {
      if (status) process.stdout.write(`${text(status, recent)}\n`)
      else
        process.stderr.write(
          `${errorFacts(error)
            .map(errorFact => `${errorFact.code} ${errorFact.message}`)
            .join('\n')}\n`
        )
    },
    [Symbol.dispose]() {},
  }
}

/** Without a terminal: one line each time, with the most important values. */
function lineOf({ health, info, status, summary }: ServerStatus, recent: Recent | undefined): string {
  const { p50Ms, p95Ms } = recent?.summary.all ?? {}
  const parts = [
    new Date().toISOString().slice(11, 19),
    health?.status ?? 'unknown',
    ...(info ? [`${info.workers.length} worker${info.workers.length === 1 ? '' : 's'}`] : []),
    ...(recent ? [`${counted(recent.summary.all.requests / recent.seconds)}/s`] : []),
    ...(status ? [`${counted(status.requests_active)} under way`, `${counted(status.requests_total)} in all`] : []),
    ...(p50Ms === undefined ? [] : [`p50 ${milliseconds(p50Ms)}`, `p95 ${milliseconds(p95Ms ?? p50Ms)}`]),
    ...(summary ? [`${counted(recent?.summary.all.failed ?? summary.all.failed)} failed`] : []),
  ]
  return parts.join('  ')
}
