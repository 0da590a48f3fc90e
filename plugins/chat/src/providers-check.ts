import { messageOf, type SlotView, systemUse, within } from '@svc/core'
import type { Check, CheckReport, Provider } from '@svc/core/contracts'
import type { ProviderCounts } from './provider-counts.ts'

type Probed = { readonly healthy: true } | { readonly healthy: false; readonly error: string }

const FRESH_MS = 10_000
const LIMIT_MS = 2_000

/** The check `providers`: each is probed at most every ten seconds, in single flight, within two seconds. */
export function createProvidersCheck(
  providers: SlotView<Provider>,
  counts: Pick<ProviderCounts, 'read'>,
  signal: AbortSignal
): Check {
  let probing: Promise<Map<string, Probed>> | undefined
  let probedAt = Number.NEGATIVE_INFINITY
  let version = -1
  const fresh = () => {
    const now = performance.now()
    if (!probing || now - probedAt > FRESH_MS || version !== providers.version) {
      ;[probedAt, version] = [now, providers.version]
      probing = probeAll(providers, signal)
    }
    return probing
  }
  return {
    async probe() {
      return reportOf(await fresh())
    },
    async status(use) {
      const [probed, asked] = await Promise.all([fresh(), counts.read(use)])
      return reportOf(probed, asked)
    },
  }
}

/** Without counts it says how they are and no more. */
function reportOf(probed: Map<string, Probed>, asked?: ReadonlyMap<string, number>): CheckReport {
  const requests = (name: string) => (asked ? { requests: asked.get(name) ?? 0 } : {})
  const shown = [...probed].map(([name, one]) => [name, one.healthy ? { ...one, ...requests(name) } : one] as const)
  return { ...judge(probed), detail: Object.fromEntries(shown) }
}

function judge(probed: Map<string, Probed>): Omit<CheckReport, 'detail'> {
  const sick = [...probed].filter(([, one]) => !one.healthy).map(([name]) => name)
  if (probed.size === 0) return { status: 'unhealthy', reason: 'no provider is configured' }
  if (sick.length === 0) return { status: 'healthy' }
  return { status: sick.length === probed.size ? 'unhealthy' : 'degraded', reason: `not reachable: ${sick.join(', ')}` }
}

async function probeAll(providers: SlotView<Provider>, signal: AbortSignal): Promise<Map<string, Probed>> {
  return new Map(
    await Promise.all(providers.entries().map(async ([name, provider]) => [name, await probeOne(provider, signal)] as const))
  )
}

async function probeOne(provider: Provider, signal: AbortSignal): Promise<Probed> {
  const late = () => new Error(`no answer within ${LIMIT_MS} ms`)
  try {
    await within(LIMIT_MS, ending => provider.probe(systemUse(ending, 'health')), { signal, late })
    return { healthy: true }
  } catch (error) {
    return { healthy: false, error: messageOf(error) }
  }
}
