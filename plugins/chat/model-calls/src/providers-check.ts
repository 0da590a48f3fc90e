import { codeOf, type Log, messageOf, type SlotView, systemContext, withTimeout } from '@svc/core'
import type { Check, CheckReport, Provider } from '@svc/core/contracts'
import type { ProviderCounts } from './call.ts'
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
