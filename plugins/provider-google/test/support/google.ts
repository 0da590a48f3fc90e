import { systemUse } from '@svc/core'
import { type ModelEvent, type ModelMessage, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { testHost } from '@svc/core/testing'
import { KEY } from './gemini-api.ts'

const VARIABLE = 'SVC_TEST_GOOGLE_KEY'
process.env[VARIABLE] = KEY

export interface Opened extends AsyncDisposable {
  readonly provider: Provider
  named(name: string): Provider
  close(): Promise<void>
}

/** The plugin in a strict host; each entry has the key unless it says otherwise. */
export async function openProviders(entries: { readonly [name: string]: object }): Promise<Opened> {
  const config = Object.entries(entries).map(([name, entry]) => [name, { type: 'google', api_key_env: VARIABLE, ...entry }])
  const host = await testHost([new URL('../..', import.meta.url)], { config: { providers: Object.fromEntries(config) } })
  const named = (name: string) => host.slot(Providers).get(name)!
  const close = () => host.close()
  return { provider: named(Object.keys(entries)[0]!), named, close, [Symbol.asyncDispose]: close }
}

export const openGoogle = (base_url: string, more: object = {}): Promise<Opened> =>
  openProviders({ google: { base_url, ...more } })

export const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
export const to = (model: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  model,
  messages: [user('hello')],
  ...more,
})
export const offered = [{ name: 'weather', description: 'the weather', parameters: { type: 'object' } }]

export const everUse = () => systemUse(new AbortController().signal, 'test')
export const ask = (provider: Provider, request: ModelRequest): Promise<ModelEvent[]> =>
  Array.fromAsync(provider.chat(request, everUse()))
type Failed = Error & { readonly code?: string; readonly mend?: string; readonly details: Record<string, unknown> }
export const failureOf = (work: Promise<unknown>): Promise<Failed> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: Failed) => error
  )
