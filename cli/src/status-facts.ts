import type { Answered, Summary, Worked } from './metrics-summary.ts'
import { isGood, type ServerStatus, uptimeOf, versionOf } from './server-status.ts'

/** What grew within the last seconds. */
export interface Recent {
  readonly seconds: number
  readonly summary: Summary
}

/** A status for a program: names as on the wire, milliseconds and counts; what nobody told is null. */
export function statusFacts(status: ServerStatus, recent?: Recent): object {
  const { url, info, status: told, summary, untold } = status
  return {
    ok: isGood(status),
    url: url || null,
    pid: info?.pid ?? null,
    version: versionOf(status),
    uptime_seconds: Math.floor(uptimeOf(status)),
    ...healthFacts(status),
    workers: info?.workers.map(({ startedAt, ...worker }) => ({ ...worker, uptime_seconds: secondsSince(startedAt) })) ?? null,
    requests: requestFacts(status),
    routes: summary?.routes.map(({ route, ...one }) => ({ route, requests: one.requests, ...answeredFacts(one) })) ?? null,
    providers: providerFacts(status),
    plugins: pluginFacts(status),
    store: storeOf(status) ?? null,
    cache: told?.cache ?? null,
    untold,
    ...(recent ? { recent: recentFacts(recent) } : {}),
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

export const secondsSince = (ms: number): number => Math.max(0, Math.floor((Date.now() - ms) / 1000))

/** The plugin that keeps everything. */
export const storeOf = ({ plugins }: ServerStatus): string | undefined => plugins.find(one => one.provides === 'store')?.name

const rounded = (value: number | undefined, digits = 1) => (value === undefined ? null : Number(value.toFixed(digits)))

const answeredFacts = ({ refused, failed, p50Ms, p95Ms }: Answered) => ({
  refused,
  failed,
  p50_ms: rounded(p50Ms),
  p95_ms: rounded(p95Ms),
})

const workedFacts = ({ calls, errors, ms }: Worked) => ({ calls, errors, ms: rounded(ms) })

function providerFacts({ status, summary }: ServerStatus): object | null {
  const names = new Set([...Object.keys(status?.providers ?? {}), ...(summary?.providers.map(one => one.name) ?? [])])
  if (!status && !summary) return null
  return Object.fromEntries(
    [...names].map(name => {
      const work = summary?.providers.find(one => one.name === name)
      const facts = work ? { ...workedFacts(work), input_tokens: work.input, output_tokens: work.output } : {}
      return [name, { ...status?.providers[name], ...facts }]
    })
  )
}

function pluginFacts({ plugins, summary, health }: ServerStatus): object[] {
  const names = new Set([...plugins.map(one => one.name), ...(summary?.plugins.map(one => one.name) ?? [])])
  return [...names].map(name => {
    const report = plugins.find(one => one.name === name)
    const work = summary?.plugins.find(one => one.name === name)
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
