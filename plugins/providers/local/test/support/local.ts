import { systemContext } from '@svc/core'
import { type ModelEvent, type ModelMessage, type ModelRequest, type Provider, Providers } from '@svc/core/contracts'
import { testHost } from '@svc/testing'

/** The plugin in a strict host, as its provider. */
export async function openLocal(entry: object = {}): Promise<{ provider: Provider; close(): Promise<void> } & AsyncDisposable> {
  const host = await testHost([new URL('../..', import.meta.url)], { config: { providers: { local: { ...entry } } } })
  const close = () => host.close()
  return { provider: host.slot(Providers).get('local')!, close, [Symbol.asyncDispose]: close }
}

export const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
export const says = (text: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  model: 'local-1',
  messages: [user(text)],
  ...more,
})
export const offered = (...names: string[]) =>
  names.map(name => ({ name, description: `the tool ${name}`, parameters: { type: 'object' } }))

export const endlessContext = () => systemContext(new AbortController().signal, 'test')
export const ask = (provider: Provider, request: ModelRequest): Promise<ModelEvent[]> =>
  Array.fromAsync(provider.chat(request, endlessContext()))
export const textOf = (events: readonly ModelEvent[]) => events.map(event => (event.type === 'text' ? event.text : '')).join('')
export const endOf = (events: readonly ModelEvent[]) => events.find(event => event.type === 'finish')?.reason
export const usageOf = (events: readonly ModelEvent[]) => events.find(event => event.type === 'usage')!.usage
export async function failureOf(
  work: Promise<unknown>
): Promise<{ code?: string; message: string; details?: Record<string, unknown> }> {
  return work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: Error) => error
  )
}
