import { errorPage } from './command/report-error.ts'
import { openLiveScreen } from './live-screen.ts'
import { grownSince, type Metrics } from './metrics-text.ts'
import { type Asked, readStatus } from './server-status.ts'
import { untilEnded } from './status.ts'
import { type Look, lookAgain } from './status-watch.ts'
import { metricsUnavailable } from './errors.ts'
import { type PluginUsage, usageOf } from './usage.ts'
import { type Recent, usageTable } from './usage-table.ts'

type SortedBy = 'time' | 'calls' | 'errors' | 'memory' | 'cpu'

export interface TopOptions extends Asked {
  readonly sort: SortedBy
  readonly once: boolean
  /** Seconds between two looks. */
  readonly interval: number
  readonly json: boolean
}

/** `svc plugins top`; resolves with the exit code. */
export async function top(options: TopOptions): Promise<number> {
  if (options.json || options.once || !process.stdout.isTTY) return await once(options)
  using live = openLiveScreen(process.stdout)
  const foot = `every ${options.interval} s, by ${options.sort}; Ctrl-C ends it`
  const show = (now: Look, before: Look | undefined) => live.draw(`${pictureOf(options, now, before)}\n\n${foot}`)
  return await untilEnded(signal => lookAgain(options, signal, show))
}

async function once(options: TopOptions): Promise<number> {
  const { metrics, untold } = await readStatus(options)
  if (metrics === undefined) throw metricsUnavailable(untold.find(one => one.path === '/metrics'))
  const all = sorted(usageOf(metrics), options.sort)
  process.stdout.write(
    `${options.json ? JSON.stringify({ plugins: all.map(wire) }, null, 2) : usageTable(all, { width: width() })}\n`
  )
  return 0
}

/** A pipe takes lines of any width. */
const width = () => (process.stdout.isTTY ? process.stdout.columns || 80 : Infinity)

function pictureOf({ sort }: TopOptions, now: Look, before: Look | undefined): string {
  if (now.status === undefined) return errorPage(now.error)
  const { metrics, untold } = now.status
  if (metrics === undefined) return errorPage(metricsUnavailable(untold.find(one => one.path === '/metrics')))
  const recent = recentOf(now.at, metrics, before)
  return usageTable(sorted(usageOf(metrics), sort), { width: width(), ...(recent ? { recent } : {}) })
}

function recentOf(at: number, metrics: Metrics, before: Look | undefined): Recent | undefined {
  if (before?.status?.metrics === undefined) return undefined
  const grown = usageOf(grownSince(before.status.metrics, metrics))
  return { seconds: (at - before.at) / 1000, of: new Map(grown.map(one => [one.name, one])) }
}

const KEYS: Readonly<Record<SortedBy, (one: PluginUsage) => number>> = {
  time: one => one.ms,
  calls: one => one.calls,
  errors: one => one.errors,
  memory: one => one.isolated?.memoryBytes ?? 0,
  cpu: one => one.isolated?.cpuMs ?? 0,
}

const sorted = (all: readonly PluginUsage[], by: SortedBy) =>
  all.toSorted((a, b) => KEYS[by](b) - KEYS[by](a) || a.name.localeCompare(b.name))

const wire = ({ name, calls, errors, ms, isolated }: PluginUsage) => ({
  plugin: name,
  calls,
  errors,
  ms: Number(ms.toFixed(3)),
  ...(isolated === undefined
    ? {}
    : {
        isolation: 'process',
        memory_bytes: isolated.memoryBytes,
        cpu_ms: Math.round(isolated.cpuMs),
        restarts: isolated.restarts,
        refusals: isolated.refusals,
        quarantined: isolated.quarantined,
      }),
})
