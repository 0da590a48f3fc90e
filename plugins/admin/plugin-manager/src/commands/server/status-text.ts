import { styleText } from 'node:util'
import { clipped, counted, milliseconds, oneLine, table, visible } from '@svc/cli/command'
import { type RequestLatency, type ProviderWorked, shortName, type Summary, type Worked } from './metrics.ts'
import { isGood, type ServerStatus, uptimeOf, versionOf } from './server-status.ts'

/** Widths of names that leave space for large numbers in 80 columns. */
const ROUTE = 30
const PROVIDER = 15
/** Leaves space for the names of the rows. */
const REASON = 70
const MOST_ROWS = 8

type Colour = 'bold' | 'gray' | 'green' | 'yellow' | 'red'
const paint = (colour: Colour, text: string) => styleText(colour, text, { stream: process.stdout })

const COLOURS: Readonly<Record<string, Colour>> = { healthy: 'green', degraded: 'yellow', unhealthy: 'red' }
const word = (health: string) => paint(COLOURS[health] ?? 'gray', health)

/** The status for a person, in 80 columns. With `recent`: rates and latency of the last interval. */
export function statusText(status: ServerStatus, recent?: Recent): string {
  const blocks = [head(status), facts(status, recent), workers(status), ...metrics(status, recent), unavailable(status)]
  return blocks.filter(block => block !== '').join('\n\n')
}

function head(status: ServerStatus): string {
  const { url, info, health } = status
  const where = url === '' ? 'listens nowhere' : `at ${paint('bold', url)}`
  const facts = [...(info ? [`process ${info.pid}`] : []), `up ${duration(uptimeOf(status))}`]
  return `svc ${versionOf(status)} ${where}${health ? ` is ${word(health.status)}` : ''}  ${paint('gray', facts.join(', '))}`
}

function facts(status: ServerStatus, recent: Recent | undefined): string {
  const { health, status: record } = status
  const store = storeOf(status)
  const rows: [string, string][] = [
    ['requests', requestsText(status, recent)],
    ['latency', latencyText(recent?.summary.all ?? status.summary?.all)],
    ['checks', health ? checksText(health.checks) : ''],
    ...reasonsOf(status),
    ...failedReload(status),
    ['store', store ? shortName(store) : ''],
    ['cache', record ? cacheText(record.cache) : ''],
  ]
  const shown = rows.filter(([, text]) => text !== '')
  return shown.map(([name, text]) => `${paint('gray', name.padEnd(8))}  ${text}`).join('\n')
}

/** Unhealthy checks one by one, healthy ones together. */
function checksText(checks: Readonly<Record<string, string>>): string {
  const { well = [], sick = [] } = Object.groupBy(Object.entries(checks), ([, state]) => (state === 'healthy' ? 'well' : 'sick'))
  const together = well.length > 0 ? [`${well.map(([name]) => name).join(', ')} ${word('healthy')}`] : []
  return [...sick.map(([name, state]) => `${name} ${word(state)}`), ...together].join('; ')
}

/** The last reload, if it failed. The server is healthy: its former workers serve on. */
function failedReload({ info }: ServerStatus): [string, string][] {
  if (info?.failedReload === undefined) return []
  const { at, problems } = info.failedReload
  const ago = `${paint('red', 'failed')} ${duration(secondsSince(at))} ago; the former workers serve on`
  const lines = problems.map(({ code, plugin, message }) => [code, plugin, message].filter(Boolean).join(' '))
  return [['reload', ago], ...lines.map((text): [string, string] => ['', clipped(visible(oneLine(text)), REASON)])]
}

/** Why a check is not healthy, one line each. */
const reasonsOf = ({ status }: ServerStatus): [string, string][] =>
  Object.entries(status?.checks ?? {}).flatMap(([name, { reason }]): [string, string][] =>
    reason === undefined ? [] : [['', clipped(`${name}: ${oneLine(reason)}`, REASON)]]
  )

function requestsText({ status, summary }: ServerStatus, recent: Recent | undefined): string {
  const parts = [
    ...(recent ? [`${perSecond(recent.summary.all.requests, recent)}/s`] : []),
    ...(status ? [`${counted(status.requests_total)} in all`, `${counted(status.requests_active)} under way`] : []),
    ...(summary ? [`${counted(summary.all.refused)} refused (4xx)`, failedText(summary.all.failed)] : []),
  ]
  return parts.join(', ')
}

const failedText = (failed: number) => (failed > 0 ? paint('red', `${counted(failed)} failed (5xx)`) : '0 failed (5xx)')

const latencyText = (all: RequestLatency | undefined) =>
  all?.p50Ms === undefined ? '' : `p50 ${time(all.p50Ms)}, p95 ${time(all.p95Ms)}`

const time = (ms: number | undefined) => (ms === undefined ? '' : milliseconds(ms))

const cacheText = ({ enabled, size, hit_rate: rate }: { enabled: boolean; size: number; hit_rate: number }) =>
  enabled ? `${counted(size)} entries, ${Math.round(rate * 100)} % hits` : 'off'

const perSecond = (count: number, { seconds }: Recent) => counted(count / seconds)

/** A table with a bold head; failing rows are red. */
function block(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  isBad: (at: number) => boolean = () => false
): string {
  if (rows.length === 0) return ''
  const sides = heads.map((name, at) => (at === 0 || name === 'STATE' ? ('left' as const) : ('right' as const)))
  const [first = '', ...lines] = table([heads, ...rows], sides).split('\n')
  return [paint('bold', first), ...lines.map((line, at) => (isBad(at) ? paint('red', line) : line))].join('\n')
}

function workers({ info }: ServerStatus): string {
  const rows = info?.workers.map(worker => [
    String(worker.pid),
    worker.state,
    String(worker.generation),
    duration(secondsSince(worker.startedAt)),
  ])
  return block(['WORKER', 'STATE', 'GENERATION', 'UP'], rows ?? [])
}

function metrics(status: ServerStatus, recent: Recent | undefined): string[] {
  const { summary } = status
  if (!summary) return [describeProviders(status)]
  return [routes(summary, recent), providers(status, summary, recent), plugins(status, summary, recent)]
}

/** A column of rates, with `recent` only. */
const rate = <T extends { readonly [key in K]: number }, K extends string>(
  recent: Recent | undefined,
  item: T | undefined,
  key: K
): string[] => (recent ? [perSecond(item?.[key] ?? 0, recent)] : [])
const rateHead = (recent: Recent | undefined) => (recent ? ['/S'] : [])

function routes({ routes: all }: Summary, recent: Recent | undefined): string {
  const rows = all.slice(0, MOST_ROWS).map(item => {
    const now = recent?.summary.routes.find(other => other.route === item.route)
    const { p50Ms, p95Ms } = now ?? item
    const counts = [item.requests, item.refused, item.failed].map(counted)
    return [clipped(item.route, ROUTE), ...rate(recent, now, 'requests'), ...counts, time(p50Ms), time(p95Ms)]
  })
  const heads = ['ROUTE', ...rateHead(recent), 'REQUESTS', '4XX', '5XX', 'P50', 'P95']
  return block(heads, rows, at => (all[at]?.failed ?? 0) > 0)
}

function providers({ status }: ServerStatus, { providers: all }: Summary, recent: Recent | undefined): string {
  const names = [...new Set([...Object.keys(status?.providers ?? {}), ...all.map(item => item.name)])]
  const rows = names.map(name => {
    const work = all.find(item => item.name === name) ?? IDLE
    const now = recent?.summary.providers.find(provider => provider.name === name)
    const state = stateOf(status?.providers[name])
    const tokens = [work.input, work.output].map(shortCount)
    return [clipped(name, PROVIDER), state, ...rate(recent, now, 'calls'), ...workCells(work), ...tokens]
  })
  const heads = ['PROVIDER', 'STATE', ...rateHead(recent), 'CALLS', 'ERRORS', 'MEAN', 'TOKENS IN', 'OUT']
  const failures = names
    .flatMap(name => status?.providers[name]?.error ?? [])
    .map(error => paint('red', `  ${clipped(oneLine(error), 76)}`))
  return [block(heads, rows, at => status?.providers[names[at]!]?.healthy === false), ...failures].filter(Boolean).join('\n')
}

const IDLE: ProviderWorked = { name: '', calls: 0, errors: 0, ms: 0, input: 0, output: 0 }
const stateOf = (record: { readonly healthy: boolean } | undefined) =>
  record === undefined ? '' : record.healthy ? 'healthy' : 'unhealthy'

const workCells = ({ calls, errors, ms }: Worked) => [counted(calls), counted(errors), calls > 0 ? milliseconds(ms / calls) : '']

/** Without metrics, the status record contains the requests of each provider. */
function describeProviders({ status }: ServerStatus): string {
  const all = Object.entries(status?.providers ?? {})
  const rows = all.map(([name, entry]) => [clipped(name, PROVIDER), stateOf(entry), counted(entry.requests ?? 0)])
  return block(['PROVIDER', 'STATE', 'REQUESTS'], rows, at => all[at]?.[1].healthy === false)
}

function plugins(status: ServerStatus, { plugins: all }: Summary, recent: Recent | undefined): string {
  const busy = all.filter(item => item.calls > 0 || item.errors > 0)
  const shown = [...busy.filter(item => item.errors > 0), ...busy.filter(item => item.errors === 0)].slice(0, MOST_ROWS)
  const rows = shown.map(item => {
    const now = recent?.summary.plugins.find(other => other.name === item.name)
    return [clipped(shortName(item.name), ROUTE), ...rate(recent, now, 'calls'), ...workCells(item), milliseconds(item.ms)]
  })
  const failed = status.plugins
    .filter(plugin => plugin.state === 'failed')
    .map(plugin => paint('red', `${shortName(plugin.name)} failed: ${plugin.error?.code ?? ''}`))
  const heads = ['PLUGIN (HOOKS)', ...rateHead(recent), 'CALLS', 'ERRORS', 'MEAN', 'TIME']
  return [block(heads, rows, at => (shown[at]?.errors ?? 0) > 0), ...failed].filter(Boolean).join('\n')
}

function unavailable({ unavailable: all }: ServerStatus): string {
  const lines = all.map(({ path, code, message }) => {
    const hint = code === 'AUTHENTICATION_FAILED' ? '; set SVC_API_KEY to an API key or a token' : ''
    return paint('yellow', `${path} returned nothing: ${oneLine(`${code} ${message}`)}${hint}`)
  })
  return lines.join('\n')
}

/** A duration of seconds or longer: `45 s`, `3 min 20 s`, `2 h 14 min`, `3 d 4 h`. */
function duration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [Math.floor(seconds) % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  const shown = first === -1 ? parts.slice(-1) : parts.slice(first, first + 2).filter(([count]) => count > 0)
  return shown.map(([count, unit]) => `${count} ${unit}`).join(' ')
}

/** `1.2M`, for cells that must stay narrow. */
const shortCount = (value: number): string => value.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 1 })

/** The growth within the last seconds. */
export interface Recent {
  readonly seconds: number
  readonly summary: Summary
}

/** The status as JSON, with names as in the API; null for unknown values. */
export function statusFacts(status: ServerStatus, recent?: Recent): object {
  const { url, info, status: record, summary, unavailable } = status
  return {
    ok: isGood(status),
    url: url || null,
    pid: info?.pid ?? null,
    version: versionOf(status),
    uptime_seconds: Math.floor(uptimeOf(status)),
    ...healthFacts(status),
    workers: info?.workers.map(({ startedAt, ...worker }) => ({ ...worker, uptime_seconds: secondsSince(startedAt) })) ?? null,
    failed_reload: failedReloadFacts(status),
    requests: requestFacts(status),
    routes: summary?.routes.map(({ route, ...item }) => ({ route, requests: item.requests, ...answeredFacts(item) })) ?? null,
    providers: providerFacts(status),
    plugins: pluginFacts(status),
    store: storeOf(status) ?? null,
    cache: record?.cache ?? null,
    untold: unavailable,
    ...(recent ? { recent: recentFacts(recent) } : {}),
  }
}

const failedReloadFacts = ({ info }: ServerStatus) => {
  if (info?.failedReload === undefined) return null
  const { at, reason, problems } = info.failedReload
  return {
    at: new Date(at).toISOString(),
    reason,
    problems: problems.map(({ code, plugin, message }) => ({ code, plugin: plugin ?? null, message })),
  }
}

const healthFacts = ({ health, status }: ServerStatus) => ({
  health: health?.status ?? null,
  checks: health?.checks ?? null,
  ...(status?.checks ? { trouble: status.checks } : {}),
})

const requestFacts = ({ status, summary }: ServerStatus) => ({
  total: status?.requests_total ?? null,
  active: status?.requests_active ?? null,
  ...(summary ? answeredFacts(summary.all) : {}),
})

const secondsSince = (ms: number): number => Math.max(0, Math.floor((Date.now() - ms) / 1000))

/** The plugin that provides the store. */
const storeOf = ({ plugins }: ServerStatus): string | undefined => plugins.find(plugin => plugin.provides === 'store')?.name

const rounded = (value: number | undefined, digits = 1) => (value === undefined ? null : Number(value.toFixed(digits)))

const answeredFacts = ({ refused, failed, p50Ms, p95Ms }: RequestLatency) => ({
  refused,
  failed,
  p50_ms: rounded(p50Ms),
  p95_ms: rounded(p95Ms),
})

const workedFacts = ({ calls, errors, ms }: Worked) => ({ calls, errors, ms: rounded(ms) })

function providerFacts({ status, summary }: ServerStatus): object | null {
  const names = new Set([...Object.keys(status?.providers ?? {}), ...(summary?.providers.map(provider => provider.name) ?? [])])
  if (!status && !summary) return null
  return Object.fromEntries(
    [...names].map(name => {
      const work = summary?.providers.find(provider => provider.name === name)
      const facts = work ? { ...workedFacts(work), input_tokens: work.input, output_tokens: work.output } : {}
      return [name, { ...status?.providers[name], ...facts }]
    })
  )
}

function pluginFacts({ plugins, summary, health }: ServerStatus): object[] {
  const names = new Set([...plugins.map(plugin => plugin.name), ...(summary?.plugins.map(plugin => plugin.name) ?? [])])
  return [...names].map(name => {
    const report = plugins.find(plugin => plugin.name === name)
    const work = summary?.plugins.find(plugin => plugin.name === name)
    return {
      name,
      state: report?.state ?? (health?.plugins?.[name] ? 'failed' : 'running'),
      ...(report?.error ? { error: report.error } : {}),
      ...(work ? workedFacts(work) : {}),
    }
  })
}

const recentFacts = ({ seconds, summary: { all } }: Recent) => ({
  seconds: rounded(seconds, 3),
  requests: all.requests,
  requests_per_second: rounded(all.requests / seconds, 2),
  ...answeredFacts(all),
})
