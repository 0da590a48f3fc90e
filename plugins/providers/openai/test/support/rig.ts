import type { ConfigTree, LogOptions, RunningHost } from '@svc/core'
import { type Provider, Providers } from '@svc/core/contracts'
import { type Answerer, type FakeUpstream, openUpstream, testHost } from '@svc/testing'
import { speak } from './wire.ts'

export const KEY_ENV = 'SVC_TEST_OPENAI_KEY'
export const KEY = 'sk-canary-4711-zyxwvu'

export interface Rig extends AsyncDisposable {
  readonly provider: Provider
  readonly host: RunningHost
  readonly upstream: FakeUpstream
  connections(): number
  sent(): unknown
  close(): Promise<void>
}

/** Starts the plugin alone, with these entries. */
export function startPlugin(providers: ConfigTree, log: LogOptions = {}): Promise<RunningHost> {
  return testHost([new URL('../..', import.meta.url)], { config: { providers }, log })
}

/** The plugin in a strict host, with one entry that leads to a fake server. */
export async function openRig(entry: ConfigTree = {}, by: Answerer = speak, log: LogOptions = {}): Promise<Rig> {
  process.env[KEY_ENV] = KEY
  const upstream = await openUpstream(by)
  const host = await startPlugin(
    { main: { type: 'openai', base_url: `${upstream.url}/v1`, api_key_env: KEY_ENV, ...entry } },
    log
  )
  const close = async () => {
    await host.close()
    await upstream.close()
  }
  return {
    provider: host.slot(Providers).get('main')!,
    host,
    upstream,
    connections: () => upstream.open(),
    sent: () => upstream.received.findLast(({ method }) => method === 'POST')?.body,
    close,
    [Symbol.asyncDispose]: close,
  }
}

export { ask, failureOf as failing } from '@svc/testing'
