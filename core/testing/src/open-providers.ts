import { type ModelEvent, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { testHost } from './host.ts'
import { testContext } from './contexts.ts'

/** Providers of one plugin; closing them closes its host. */
export interface OpenProviders extends AsyncDisposable {
  /** Of the first entry. */
  readonly provider: Provider
  named(name: string): Provider
  close(): Promise<void>
}

/** The plugin in this folder in a strict host, with these entries of `providers`. */
export async function openProviders(plugin: URL, entries: { readonly [name: string]: object }): Promise<OpenProviders> {
  const host = await testHost([plugin], { config: { providers: { ...entries } } })
  const named = (name: string) => host.slot(Providers).get(name)!
  const close = () => host.close()
  return { provider: named(Object.keys(entries)[0]!), named, close, [Symbol.asyncDispose]: close }
}

/** All events of an answer. */
export const ask = (provider: Provider, request: ModelRequest): Promise<ModelEvent[]> =>
  Array.fromAsync(provider.chat(request, testContext()))

/** What a provider fails with. */
type ProviderFailed = Error & { readonly code?: string; readonly hint?: string; readonly details: Record<string, unknown> }

/** What this work fails with. Rejects where it does not fail. */
export const failureOf = (work: Promise<unknown>): Promise<ProviderFailed> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: ProviderFailed) => error
  )
