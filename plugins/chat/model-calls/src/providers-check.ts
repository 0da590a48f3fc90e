import { type CallContext, codeOf, type Log, messageOf, type SlotView, systemContext, withTimeout } from '@svc/core'
import type { Check, CheckReport, Peers, Provider, WorkerMetrics } from '@svc/core/contracts'
import { probeLate } from './errors.ts'

type Probed = { readonly healthy: true } | { readonly healthy: false; readonly error: string }

const FRESH_MS = 10_000
const LIMIT_MS = 2_000

/** The check `providers`. It probes each provider at most every ten seconds, with a time limit of two seconds. Concurrent checks share one probe. */
export function createProvidersCheck(
  providers: SlotView<Provider>,
  counts: Pick<ProviderCounts, 'read'>,
  log: Log,
  signal: AbortSignal
): Check {
  let probing: Promise<Map<string, Probed>> | undefined
  let probedAt = Number.NEGATIVE_INFINITY
  let version = -1
  const fresh = () => {
    const now = performance.now()
    if (!probing || now - probedAt > FRESH_MS || version !== providers.version) {
      ;[probedAt, version] = [now, providers.version]
      probing = probeAll(providers, log, signal)
    }
    return probing
  }
  return {
    async probe() {
      return reportOf(await fresh())
    },
    async status(ctx) {
      const [probed, asked] = await Promise.all([fresh(), counts.read(ctx)])
      return reportOf(probed, asked)
    },
  }
}

/** Without `asked`, the report has no request counts. */
function reportOf(probed: Map<string, Probed>, asked?: ReadonlyMap<string, number>): CheckReport {
  const requests = (name: string) => (asked ? { requests: asked.get(name) ?? 0 } : {})
  const shown = [...probed].map(([name, item]) => [name, item.healthy ? { ...item, ...requests(name) } : item] as const)
  return { ...judge(probed), detail: Object.fromEntries(shown) }
}

function judge(probed: Map<string, Probed>): Omit<CheckReport, 'detail'> {
  const unhealthy = [...probed].filter(([, item]) => !item.healthy).map(([name]) => name)
  if (probed.size === 0) return { status: 'unhealthy', reason: 'no provider is configured' }
  if (unhealthy.length === 0) return { status: 'healthy' }
  return { status: unhealthy.length === probed.size ? 'unhealthy' : 'degraded', reason: `not reachable: ${unhealthy.join(', ')}` }
}

async function probeAll(providers: SlotView<Provider>, log: Log, signal: AbortSignal): Promise<Map<string, Probed>> {
  const probed = async ([name, provider]: readonly [string, Provider]) =>
    [name, await probeOne(name, provider, log, signal)] as const
  return new Map(await Promise.all(providers.entries().map(probed)))
}

/** Passes on only messages of MODEL_FAILED. Another error of a provider can contain a path or a key. */
async function probeOne(name: string, provider: Provider, log: Log, signal: AbortSignal): Promise<Probed> {
  const late = () => probeLate(name, LIMIT_MS)
  try {
    await withTimeout(LIMIT_MS, ending => provider.probe(systemContext(ending, 'health')), { signal, late })
    return { healthy: true }
  } catch (error) {
    if (codeOf(error) === 'MODEL_FAILED') return { healthy: false, error: messageOf(error) }
    log.warn({ err: error, provider: name }, 'failed to probe a provider')
    return { healthy: false, error: `provider "${name}" failed` }
  }
}

/** Counts the requests to each provider, in all workers. */
export interface ProviderCounts {
  /** Counts a request of this worker. */
  readonly asked: (provider: string) => void
  readonly read: (ctx: CallContext) => Promise<ReadonlyMap<string, number>>
  /** For a tap of `Peers.hooks.metrics`: adds the counts of this worker. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

type Counts = readonly (readonly [provider: string, count: number])[]

const NAME = 'model-calls'

// `own` of this process, or of another worker, has written the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? []) as unknown as Counts

export function createProviderCounts(peers: Peers | undefined): ProviderCounts {
  const counts = new Map<string, number>()
  return {
    asked: provider => add(counts, provider, 1),
    async read(ctx) {
      if (!peers) return counts
      const sum = new Map<string, number>()
      for (const worker of await peers.metrics(ctx)) addAll(sum, partOf(worker))
      return sum
    },
    own: metrics => ({ ...metrics, [NAME]: [...counts] }),
    inherit: metrics => addAll(counts, partOf(metrics)),
  }
}

const add = (counts: Map<string, number>, provider: string, count: number) =>
  void counts.set(provider, (counts.get(provider) ?? 0) + count)

function addAll(counts: Map<string, number>, more: Counts) {
  for (const [provider, count] of more) add(counts, provider, count)
}
