import { styleText } from 'node:util'
import { clipped, counted, errorPage, milliseconds, table, visible } from '@svc/cli/command'
import { createCredentials, hasApi } from '@svc/cli/program'
import { codeOf, type SvcError, svcError, svcHome } from '@svc/core'
import type { PluginSummary } from '@svc/core/contracts'
import { reachServer } from '@svc/runtime'
import { pluginsOf } from '../report/plugin-state.ts'
import { shortName } from './metrics.ts'
import { checkedUrl, getWith, jsonOf, type ServerAddress, unavailable } from './server-status.ts'
import { lookAgain, openLiveScreen, type Sample, untilEnded } from './watch.ts'

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
  const show = (now: UsageSample, before: UsageSample | undefined) =>
    live.draw(`${fitted(pictureOf(options, now, before))}\n\n${foot}`)
  return await untilEnded(signal => lookAgain(() => readUsage(options), options.interval, signal, show))
}

type UsageSample = Sample<readonly PluginUsage[]>

/** The usage of the plugins of the named server, or of the one of this home. Throws as `readStatus` does, and PLUGINS_UNAVAILABLE. */
async function readUsage({ url, port, header }: ServerAddress): Promise<PluginUsage[]> {
  if (url !== undefined) return usageAt(url, header)
  try {
    using server = await reachServer(svcHome(), { port, fits: hasApi })
    return usageOf(await pluginsOf(server.control).catch(silent))
  } catch (error) {
    // a server of another home or machine can listen there
    if (codeOf(error) !== 'SERVER_NONE' || port === undefined) throw error
    return usageAt(`http://127.0.0.1:${port}`, header)
  }
}

function silent(error: unknown): never {
  throw codeOf(error) === 'PEER_SILENT' ? pluginsUnavailable('it does not load the plugin @svc/plugin-manager') : error
}

const LIST = '/api/v1/plugins'

async function usageAt(url: string, header: ServerAddress['header']): Promise<PluginUsage[]> {
  const server = { url: checkedUrl(url), trusted: false }
  const answer = await getWith(createCredentials(url, { header }), server, LIST)
  const { plugins } = jsonOf(answer.text)
  if (answer.status === 200 && Array.isArray(plugins)) return usageOf(plugins as readonly PluginSummary[])
  const { code, message } = unavailable(answer)
  throw pluginsUnavailable(`${code} ${message}`)
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
  const all = sorted(await readUsage(options), options.sort)
  process.stdout.write(
    `${options.json ? JSON.stringify({ plugins: all.map(wire) }, null, 2) : usageTable(all, { width: width() })}\n`
  )
  return 0
}

/** A pipe takes lines of any width. */
const width = () => (process.stdout.isTTY ? process.stdout.columns || 80 : Infinity)

function pictureOf({ sort }: TopOptions, now: UsageSample, before: UsageSample | undefined): string {
  if (now.found === undefined) return errorPage(now.error)
  const recent = recentOf(now.at, now.found, before)
  return usageTable(sorted(now.found, sort), { width: width(), ...(recent ? { recent } : {}) })
}

function recentOf(at: number, now: readonly PluginUsage[], before: UsageSample | undefined): RecentUsage | undefined {
  if (before?.found === undefined) return undefined
  const then = new Map(before.found.map(item => [item.name, item]))
  const grown = now.map(item => ({ ...item, calls: since(item, then, 'calls'), ms: since(item, then, 'ms') }))
  return { seconds: (at - before.at) / 1000, of: new Map(grown.map(item => [item.name, item])) }
}

/** What a total has grown by. A server that has restarted begins at 0. */
const since = (item: PluginUsage, then: ReadonlyMap<string, PluginUsage>, key: 'calls' | 'ms') => {
  const before = then.get(item.name)?.[key] ?? 0
  return item[key] < before ? item[key] : item[key] - before
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

const pluginsUnavailable = (why: string): SvcError =>
  svcError('PLUGINS_UNAVAILABLE', `the server does not show its plugins: ${why}`, {
    hint: 'Enable the plugins @svc/plugin-manager and @svc/plugin-admin-api. If authentication is on, set SVC_API_KEY to an API key or a token',
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

/** The plugins that are isolated, or were called. */
const usageOf = (plugins: readonly PluginSummary[]): PluginUsage[] =>
  plugins
    .filter(({ process, accounting }) => process !== undefined || accounting.calls > 0)
    .map(({ name, accounting, process, refusals, state }) => ({
      name,
      ...accounting,
      ...(process === undefined
        ? {}
        : {
            isolated: {
              memoryBytes: process.memory_bytes,
              cpuMs: process.cpu_ms,
              restarts: process.restarts,
              refusals: Object.values(refusals).reduce((sum, count) => sum + count, 0),
              quarantined: state === 'quarantined',
            },
          }),
    }))

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
