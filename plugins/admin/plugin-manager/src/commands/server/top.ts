import { styleText } from 'node:util'
import { clipped, counted, errorPage, milliseconds, table, visible } from '@svc/cli/command'
import { type SvcError, svcError } from '@svc/core'
import { grownSince, type Metrics, type MetricSeries, shortName } from './metrics.ts'
import { type ServerAddress, readStatus } from './server-status.ts'
import { type StatusSample, lookAgain, openLiveScreen, untilEnded } from './watch.ts'

type SortedBy = 'time' | 'calls' | 'errors' | 'memory' | 'cpu'

export interface TopOptions extends ServerAddress {
  readonly sort: SortedBy
  readonly once: boolean
  /** Seconds between two refreshes. */
  readonly interval: number
  readonly json: boolean
}

/** `svc plugins top`; resolves with the exit code. */
export async function top(options: TopOptions): Promise<number> {
  if (options.json || options.once || !process.stdout.isTTY) return await once(options)
  using live = openLiveScreen(process.stdout)
  const foot = `every ${options.interval} s, by ${options.sort}; press Ctrl-C to stop`
  const show = (now: StatusSample, before: StatusSample | undefined) =>
    live.draw(`${fitted(pictureOf(options, now, before))}\n\n${foot}`)
  return await untilEnded(signal => lookAgain(options, signal, show))
}

/** Lines below the table: an empty one, the foot, and the one on which the cursor stands. */
const FOOT_LINES = 3

/** The first lines of a table that fit on the terminal above the foot, and the number of the others. */
function fitted(table: string): string {
  const lines = table.split('\n')
  const room = Math.max(2, (process.stdout.rows || 24) - FOOT_LINES)
  if (lines.length <= room) return table
  return [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more: svc plugins top --once`].join('\n')
}

async function once(options: TopOptions): Promise<number> {
  const { metrics, unavailable } = await readStatus(options)
  if (metrics === undefined) throw metricsUnavailable(unavailable.find(item => item.path === '/metrics'))
  const all = sorted(usageOf(metrics), options.sort)
  process.stdout.write(
    `${options.json ? JSON.stringify({ plugins: all.map(wire) }, null, 2) : usageTable(all, { width: width() })}\n`
  )
  return 0
}

/** A pipe takes lines of any width. */
const width = () => (process.stdout.isTTY ? process.stdout.columns || 80 : Infinity)

function pictureOf({ sort }: TopOptions, now: StatusSample, before: StatusSample | undefined): string {
  if (now.status === undefined) return errorPage(now.error)
  const { metrics, unavailable } = now.status
  if (metrics === undefined) return errorPage(metricsUnavailable(unavailable.find(item => item.path === '/metrics')))
  const recent = recentOf(now.at, metrics, before)
  return usageTable(sorted(usageOf(metrics), sort), { width: width(), ...(recent ? { recent } : {}) })
}

function recentOf(at: number, metrics: Metrics, before: StatusSample | undefined): RecentUsage | undefined {
  if (before?.status?.metrics === undefined) return undefined
  const grown = usageOf(grownSince(before.status.metrics, metrics))
  return { seconds: (at - before.at) / 1000, of: new Map(grown.map(item => [item.name, item])) }
}

const KEYS: Readonly<Record<SortedBy, (pluginUsage: PluginUsage) => number>> = {
  time: item => item.ms,
  calls: item => item.calls,
  errors: item => item.errors,
  memory: item => item.isolated?.memoryBytes ?? 0,
  cpu: item => item.isolated?.cpuMs ?? 0,
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

const metricsUnavailable = (why?: { readonly code: string; readonly message: string }): SvcError =>
  svcError('METRICS_UNAVAILABLE', `the server publishes no metrics${why === undefined ? '' : `: ${why.code} ${why.message}`}`, {
    hint: 'Enable the plugin @svc/plugin-metrics. If authentication is on, set SVC_API_KEY to an API key or a token',
  })

/** The usage of one plugin, of all workers together. */
export interface PluginUsage {
  readonly name: string
  /** Calls of its hook taps and of its contributions. */
  readonly calls: number
  readonly errors: number
  /** Total time of these calls; overlapping calls count each. */
  readonly ms: number
  /** For an isolated plugin. */
  readonly isolated?: {
    readonly memoryBytes: number
    readonly cpuMs: number
    readonly restarts: number
    readonly refusals: number
    readonly quarantined: boolean
  }
}

const TOGETHER = ['hook', 'plugin']

/** Reads the usage of each plugin from metrics. */
function usageOf(metrics: Metrics): PluginUsage[] {
  const named = Map.groupBy(metrics.values(), series => series.name)
  const sum = (family: string, plugin: string) =>
    (named.get(`svc_${family}`) ?? []).reduce((total, { labels, value }) => (labels.plugin === plugin ? total + value : total), 0)
  const both = (what: string, plugin: string) => TOGETHER.reduce((total, kind) => total + sum(`${kind}_${what}`, plugin), 0)
  const isolated = new Set(pluginsIn(named.get('svc_plugin_up')))
  const calling = TOGETHER.flatMap(kind => pluginsIn(named.get(`svc_${kind}_calls_total`)))
  return [...new Set([...isolated, ...calling])].map(name => ({
    name,
    calls: both('calls_total', name),
    errors: both('errors_total', name),
    ms: both('seconds_total', name) * 1000,
    ...(isolated.has(name) ? { isolated: processOf(name, sum) } : {}),
  }))
}

const pluginsIn = (series: readonly MetricSeries[] = []) => series.flatMap(({ labels }) => labels.plugin ?? [])

const processOf = (name: string, sum: (family: string, plugin: string) => number) => ({
  memoryBytes: sum('plugin_memory_bytes', name),
  cpuMs: sum('plugin_cpu_seconds_total', name) * 1000,
  restarts: sum('plugin_restarts_total', name),
  refusals: sum('plugin_refusals_total', name),
  quarantined: sum('plugin_quarantined', name) > 0,
})

/** The usage since the last refresh, by plugin. */
export interface RecentUsage {
  readonly seconds: number
  readonly of: ReadonlyMap<string, PluginUsage>
}

interface Column {
  readonly head: string
  readonly cell: (pluginUsage: PluginUsage) => string
}

/** Length of a name in a wide and in a narrow table. */
const [LONG_NAME, SHORT_NAME] = [34, 20]
/** Columns that a narrow terminal leaves out, in this order: the others tell nearly the same, or concern isolated plugins. */
const DISPENSABLE = ['TIME', '/S', 'CPU', 'MEMORY', 'BUSY', 'CALLS']
const MIB = 1_048_576

/** A table of at most `width` characters: first shortens names, then leaves out columns. */
export function usageTable(
  all: readonly PluginUsage[],
  { recent, width }: { readonly recent?: RecentUsage; readonly width: number }
): string {
  const columns = [...rateColumns(recent), ...COLUMNS]
  for (let out = 0; out <= DISPENSABLE.length; out++) {
    const gone = DISPENSABLE.slice(0, out)
    const kept = columns.filter(column => !gone.includes(column.head))
    const room = width - widthOf(rowsOf(all, kept, 0))
    if (room >= SHORT_NAME || out === DISPENSABLE.length)
      return painted(all, rowsOf(all, kept, Math.min(LONG_NAME, Math.max(room, SHORT_NAME))))
  }
  return ''
}

const COLUMNS: readonly Column[] = [
  { head: 'CALLS', cell: item => counted(item.calls) },
  { head: 'ERRORS', cell: item => counted(item.errors) },
  { head: 'TIME', cell: item => milliseconds(item.ms) },
  { head: 'MEMORY', cell: ({ isolated }) => (isolated ? `${counted(isolated.memoryBytes / MIB)} MiB` : '') },
  { head: 'CPU', cell: ({ isolated }) => (isolated ? milliseconds(isolated.cpuMs) : '') },
  {
    head: 'RESTARTS',
    cell: ({ isolated }) => (isolated ? (isolated.quarantined ? 'quarantined' : counted(isolated.restarts)) : ''),
  },
  { head: 'REFUSED', cell: ({ isolated }) => (isolated ? counted(isolated.refusals) : '') },
]

/** Calls per second, and the share of one processor: above 100 % if calls overlap. */
function rateColumns(recent: RecentUsage | undefined): readonly Column[] {
  if (recent === undefined) return []
  const of = ({ name }: PluginUsage) => recent.of.get(name)
  return [
    { head: '/S', cell: item => counted((of(item)?.calls ?? 0) / recent.seconds) },
    { head: 'BUSY', cell: item => `${((of(item)?.ms ?? 0) / 10 / recent.seconds).toFixed(1)} %` },
  ]
}

const rowsOf = (all: readonly PluginUsage[], columns: readonly Column[], name: number): string[] => {
  const nameCell = (text: string) => (name === 0 ? '' : clipped(visible(text), name))
  const cells = all.map(pluginUsage => [nameCell(shortName(pluginUsage.name)), ...columns.map(({ cell }) => cell(pluginUsage))])
  const sides = ['left' as const, ...columns.map(() => 'right' as const)]
  return table([[nameCell('PLUGIN'), ...columns.map(column => column.head)], ...cells], sides).split('\n')
}

const widthOf = (rows: readonly string[]) => Math.max(...rows.map(row => row.length))

function painted(all: readonly PluginUsage[], [head = '', ...lines]: readonly string[]): string {
  const paint = (line: string, at: number) => (isBad(all[at]!) ? styleText('red', line, { stream: process.stdout }) : line)
  return [styleText('bold', head, { stream: process.stdout }), ...lines.map(paint)].join('\n')
}

const isBad = ({ isolated }: PluginUsage) => isolated !== undefined && (isolated.quarantined || isolated.restarts > 0)
