import {
  codeOf,
  type Host,
  type HostReport,
  type Log,
  type SlotView,
  type CallContext,
  systemContext,
  withTimeout,
} from '@svc/core'
import { checkInvalid } from './errors.ts'
import type { Check, CheckReport, Cluster, HealthFact, HealthWord, Json, NodeBus, Store } from '@svc/core/contracts'

const PROBE_MS = 5_000
/** The checks that the health record always names; a name without a check is reported as healthy. */
const NAMED = ['database', 'providers', 'cache']

type Ask = (check: Check, ctx: CallContext) => Promise<CheckReport>

const probe: Ask = (check, ctx) => check.probe(ctx)
/** Asks a check for its metrics too. */
export const withMetrics: Ask = (check, ctx) => (check.status ? check.status(ctx) : check.probe(ctx))

/** Runs the health checks. */
export interface Probes {
  /** Runs all checks at the same time. A check that fails or times out is unhealthy. Logs each change of a status. */
  all(ctx: CallContext, ask?: Ask): Promise<Map<string, CheckReport>>
}

export function createProbes(checks: SlotView<Check>, log: Log): Probes {
  const known = new Map<string, HealthWord>()
  const note = (name: string, { status, reason }: CheckReport, err?: unknown) => {
    if (status === (known.get(name) ?? 'healthy')) return
    known.set(name, status)
    if (status === 'healthy') log.info({ check: name }, 'a health check is healthy again')
    else
      log.warn(
        { check: name, status, ...(reason === undefined ? {} : { reason }), ...(err === undefined ? {} : { err }) },
        'a health check reports a problem'
      )
  }
  const single = async (name: string, ask: Ask, ctx: CallContext): Promise<CheckReport> => {
    const check = checks.get(name)
    let report: CheckReport = { status: 'healthy' }
    let failure: unknown
    try {
      if (check) report = reportIn(name, await withTimeout(PROBE_MS, signal => ask(check, { ...ctx, signal }), ctx))
    } catch (error) {
      failure = error
      report = { status: 'unhealthy', reason: codeOf(error) ?? 'failed' }
    }
    // after an abort, the failure says nothing about the check
    if (!ctx.signal.aborted) note(name, report, failure)
    return report
  }
  return {
    async all(ctx, ask = probe) {
      const others = checks.names().filter(name => !NAMED.includes(name))
      const names = [...NAMED, ...others]
      const reports = await Promise.all(names.map(name => single(name, ask, ctx)))
      return new Map(names.map((name, at) => [name, reports[at]!]))
    },
  }
}

/** Whether the server can do its work: `ready`, or what it lacks. */
type Readiness = 'ready' | 'store_unavailable' | 'bus_unavailable' | 'node_differs'
export type ReadReadiness = () => Promise<Readiness>

/** A load balancer takes the server out of service in a few seconds. */
const READY_LIMIT_MS = 2_500
/** Anyone may ask, and a probe writes to the disk: callers within this time share one. What has just failed can work soon. */
const [READY_FRESH_MS, UNREADY_FRESH_MS] = [1_000, 200]

interface ReadinessOptions {
  readonly host: Host
  readonly store?: Store | undefined
  readonly bus?: NodeBus | undefined
  readonly cluster?: Cluster | undefined
}

/** Asks store and bus at most once a second. What does not exist is ready. */
export function createReadiness({ host, store, bus, cluster }: ReadinessOptions): ReadReadiness {
  let last: { readonly answer: Promise<Readiness>; until: number } | undefined
  const ctx = systemContext(new AbortController().signal, 'ready')
  // the health checks log the reasons
  const holds = (work: (ctx: CallContext) => Promise<boolean>) =>
    withTimeout(READY_LIMIT_MS, signal => work({ ...ctx, signal }), ctx).catch(() => false)
  const isPrimary = async (within: CallContext) => !store || (await store.probe(within)).role === 'primary'
  const ask = async (): Promise<Readiness> => {
    const [hasStore, hasBus] = await Promise.all([
      holds(isPrimary),
      holds(async within => !bus || isMember(await host.report(within), bus, within)),
    ])
    if (!hasStore) return 'store_unavailable'
    if (!hasBus) return 'bus_unavailable'
    // data that a newer version has migrated
    const outdated = (await cluster?.outdated(ctx).catch(() => [])) ?? []
    return outdated.length === 0 ? 'ready' : 'node_differs'
  }
  const renew = () => {
    const began = performance.now()
    const fresh = { answer: ask(), until: began + READY_FRESH_MS }
    void fresh.answer.then(answer => {
      if (answer !== 'ready') fresh.until = Math.min(fresh.until, performance.now() + UNREADY_FRESH_MS)
    })
    return fresh
  }
  return () => {
    if (!last || performance.now() > last.until) last = renew()
    return last.answer
  }
}

/** Whether the other servers of the cluster take this worker for alive. A server without a cluster does not use the bus. */
async function isMember({ clusterId, serverId, worker }: HostReport, bus: NodeBus, ctx: CallContext): Promise<boolean> {
  if (clusterId === serverId) return true
  try {
    return (await bus.members(ctx)).some(member => member.worker === worker)
  } catch (error) {
    // a host that is no worker of `svc serve`
    if (codeOf(error) === 'BUS_NOT_JOINED') return true
    throw error
  }
}

const WORDS: readonly HealthWord[] = ['healthy', 'degraded', 'unhealthy']

/** Checks the report of a check, because an invalid report would break the whole health record. Throws CHECK_INVALID. */
function reportIn(name: string, answer: unknown): CheckReport {
  const { status, reason, detail } = Object(answer) as Partial<CheckReport>
  if (status === undefined || !WORDS.includes(status)) throw checkInvalid(name)
  const isDetail = typeof detail === 'object' && detail !== null && !Array.isArray(detail)
  return { status, ...(typeof reason === 'string' ? { reason } : {}), ...(isDetail ? { detail } : {}) }
}

/** Returns the worst of these statuses. */
export const worst = (words: Iterable<HealthWord>): HealthWord =>
  WORDS[Math.max(0, ...[...words].map(word => WORDS.indexOf(word)))]!

/** Returns the fields that plugins add to the health record. Omits plugins that fail, time out or return values that are not valid JSON. */
export async function factsOf(facts: SlotView<HealthFact>, ctx: CallContext): Promise<Record<string, Json>> {
  const members = facts.entries().map(async ([, fact]): Promise<Record<string, Json>> => {
    try {
      return membersOf(await withTimeout(PROBE_MS, signal => fact.facts({ ...ctx, signal }), ctx))
    } catch {
      return {}
    }
  })
  return Object.fromEntries((await Promise.all(members)).flatMap(member => Object.entries(member)))
}

function membersOf(facts: unknown): Record<string, Json> {
  const plain: unknown = JSON.parse(JSON.stringify(facts ?? {}))
  return typeof plain === 'object' && plain !== null && !Array.isArray(plain) ? (plain as Record<string, Json>) : {}
}
