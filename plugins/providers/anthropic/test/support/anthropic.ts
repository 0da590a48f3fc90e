import type { ModelMessage, ModelRequest } from '@svc/core/contracts'
import { type OpenProviders, openProviders as open } from '@svc/testing'
import { KEY } from './messages-api.ts'

const VARIABLE = 'SVC_TEST_ANTHROPIC_KEY'
process.env[VARIABLE] = KEY

/** The plugin in a strict host; each entry has the key unless it says otherwise. */
export function openProviders(entries: { readonly [name: string]: object }): Promise<OpenProviders> {
  const whole = Object.entries(entries).map(([name, entry]) => [name, { type: 'anthropic', api_key_env: VARIABLE, ...entry }])
  return open(new URL('../..', import.meta.url), Object.fromEntries(whole) as typeof entries)
}

export const openAnthropic = (base_url: string, more: object = {}): Promise<OpenProviders> =>
  openProviders({ anthropic: { base_url, ...more } })

export const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
export const to = (model: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  model,
  messages: [user('hello')],
  ...more,
})
export const offered = [{ name: 'weather', description: 'the weather', parameters: { type: 'object' } }]
