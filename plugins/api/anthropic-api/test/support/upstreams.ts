import type { ConfigTree } from '@svc/core'
import type { ModelEvent, ModelRequest, Provider, ProviderFeatures } from '@svc/core/contracts'
import { type Answerer, type FakeUpstream, openUpstream } from '@svc/testing'
import { type ApiOptions, serveApi } from './api.ts'

const KEY_ENV = 'SVC_TEST_MESSAGES_KEY'
export const KEY = 'sk-canary-messages-4711'
process.env[KEY_ENV] = KEY

/** The API before a scripted server, whose provider is called `up`. */
export async function serveBefore(type: 'anthropic' | 'openai', by: Answerer, options: ApiOptions = {}) {
  const upstream: FakeUpstream = await openUpstream(by)
  const entry: ConfigTree = { type, base_url: `${upstream.url}/v1`, api_key_env: KEY_ENV, models: ['m', 'm2'] }
  const { providers, ...config } = (options.config ?? {}) as { providers?: object }
  const api = await serveApi({
    ...options,
    plugins: [`provider-${type}`, ...(options.plugins ?? [])],
    config: { ...config, providers: { up: entry, ...providers } },
  })
  return {
    ...api,
    upstream,
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]()
      await upstream.close()
    },
  }
}

/** A frame of the Messages API. */
export const frame = (type: string, rest: object = {}): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`

/** A frame of chat completions. */
export const chunk = (delta: object, rest: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...rest }] })}\n\n`

export const lastChunk = (finish_reason: string, usage = { prompt_tokens: 11, completion_tokens: 7 }): string =>
  `${chunk({}, { finish_reason })}data: ${JSON.stringify({ id: 'c1', model: 'm', choices: [], usage })}\n\ndata: [DONE]\n\n`

/** A provider that returns these events, and remembers its requests. */
export function scripted(
  answers: readonly (readonly (ModelEvent | Error)[])[],
  features: Partial<ProviderFeatures> = {}
): Provider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    features: { tool_calling: true, streaming: true, vision: true, ...features },
    models: async () => ({ models: [{ id: 'm', output: 10_000 }], open: false }),
    countTokens: async () => 42,
    async *chat(request) {
      requests.push(request)
      for (const event of answers[Math.min(requests.length, answers.length) - 1]!) {
        if (event instanceof Error) throw event
        yield event
      }
    },
    probe: async () => undefined,
  }
}

export const USAGE: ModelEvent = { type: 'usage', usage: { input: 9, output: 4 } }
export const STOP: ModelEvent = { type: 'finish', reason: 'stop' }
export const CALLS: ModelEvent = { type: 'finish', reason: 'tool_calls' }
