import { setTimeout as sleep } from 'node:timers/promises'
import { openLiveScreen } from './live-screen.ts'
import { summaryOf } from './metrics-summary.ts'
import { grownSince } from './metrics-text.ts'
import { type Asked, readStatus, type ServerStatus } from './server-status.ts'
import { type Recent, statusFacts } from './status-facts.ts'
import { statusText } from './status-text.ts'
import { errorPage, errorFacts } from './command/report-error.ts'
import { counted, milliseconds } from './command/text.ts'

export interface WatchOptions extends Asked {
  /** Seconds between two looks. */
  readonly interval: number
  readonly json: boolean
}

/** One look at the server: how it is, or why that is not known. */
export type Look =
  | { readonly at: number; readonly status: ServerStatus; readonly error?: undefined }
  | { readonly at: number; readonly status?: undefined; readonly error: unknown }

interface View extends Disposable {
  show(look: Look, recent: Recent | undefined): void
}

/** Looks again and again until the signal aborts. What cannot be reached at the very first is thrown; later a server may go and come back. */
export async function watchStatus(options: WatchOptions, signal: AbortSignal): Promise<void> {
  using view = viewOf(options)
  await lookAgain(options, signal, (now, before) => view.show(now, before && recentOf(before, now)))
}

/** Looks, tells, and looks again until the signal aborts. What cannot be reached at the very first is thrown. */
export async function lookAgain(
  options: Asked & { readonly interval: number },
  signal: AbortSignal,
  show: (now: Look, before: Look | undefined) => void
): Promise<void> {
  let before: Look = { at: performance.now(), status: await readStatus(options) }
  show(before, undefined)
  while (await passed(options.interval * 1000, signal)) {
    const now = await look(options)
    show(now, before)
    before = now
  }
}

/** False when it was cut short. */
const passed = (ms: number, signal: AbortSignal) => sleep(ms, true, { signal }).catch(() => false)

async function look(options: Asked): Promise<Look> {
  try {
    const status = await readStatus(options)
    return { at: performance.now(), status }
  } catch (error) {
    return { at: performance.now(), error }
  }
}

function recentOf({ at, status: then }: Look, { at: end, status: now }: Look): Recent | undefined {
  if (!then?.metrics || !now?.metrics) return undefined
  return { seconds: (end - at) / 1000, summary: summaryOf(grownSince(then.metrics, now.metrics)) }
}

function viewOf({ json, interval }: WatchOptions): View {
  if (json) return lines((status, recent) => JSON.stringify(statusFacts(status, recent)))
  return process.stdout.isTTY ? screen(interval) : lines(lineOf)
}

function screen(interval: number): View {
  const live = openLiveScreen(process.stdout)
  const foot = `every ${interval} s; Ctrl-C ends it`
  return {
    show({ status, error }, recent) {
      live.draw(`${status ? statusText(status, recent) : errorPage(error)}\n\n${foot}`)
    },
    [Symbol.dispose]: () => live[Symbol.dispose](),
  }
}

function lines(text: (status: ServerStatus, recent: Recent | undefined) => string): View {
  return {
    show({ status, error }, recent) {
      if (status) process.stdout.write(`${text(status, recent)}\n`)
      else
        process.stderr.write(
          `${errorFacts(error)
            .map(one => `${one.code} ${one.message}`)
            .join('\n')}\n`
        )
    },
    [Symbol.dispose]() {},
  }
}

/** Where no terminal is: the time and what matters most, a line each. */
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
