import { messageOf, type SlotView, systemUse, within } from '@svc/core'
import type { Check, CheckReport, Provider } from '@svc/core/contracts'

/** How often each provider was asked. */
export interface ProviderCounts {
  asked(provider: string): void
  of(provider: string): number
}

export function createCounts(): ProviderCounts {
  const counts = new Map<string, number>()
  return {
    asked: provider => void counts.set(provider, (counts.get(provider) ?? 0) + 1),
    of: provider => counts.get(provider) ?? 0,
  }
}

interface Probed {
  readonly healthy: boolean
  readonly error?: string
}

const FRESH_MS = 10_000
const LIMIT_MS = 2_000

/** The check `providers`: each is probed at most every ten seconds, in single flight, within two seconds. */
export function createProvidersCheck(providers: SlotView<Provider>, counts: ProviderCounts, signal: AbortSignal): Check {
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
    async probe(): Promise<CheckReport> {
      const probed = await fresh()
      const detail = Object.fromEntries(
        [...probed].map(([name, one]) => [
          name,
          one.healthy ? { healthy: true, requests: counts.of(name) } : { healthy: false, error: one.error },
        ])
      )
      return { ...judge(probed), detail }
    },
  }
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
