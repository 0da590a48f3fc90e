import { errorFromRecord } from '@svc/cli/command'
import { codeOf, messageOf, svcError, systemContext } from '@svc/core'
import type { Provider, ServerClient, Usage } from '@svc/core/contracts'
import type { ChatEvent } from '@svc/api-types'
import type { Hello } from './catalog.ts'
import { answeredByAnother, streamBroken } from '../errors.ts'

const MESSAGE = 'Say OK.'
const MOST_TOKENS = 16

/** Asks a provider of this process; keeps no conversation. */
export async function helloTo(provider: Provider, asked: string | undefined, signal: AbortSignal): Promise<Hello> {
  const ctx = systemContext(signal, 'svc providers test')
  const model = asked ?? (await provider.models(ctx)).models[0]?.id
  if (model === undefined) throw svcError('MODEL_NOT_FOUND', 'it names no model', { hint: 'name one with --model' })
  const began = performance.now()
  let firstMs: number | undefined
  let usage: Usage | undefined
  const messages = [{ role: 'user', parts: [{ type: 'text', text: MESSAGE }] }] as const
  for await (const event of provider.chat({ model, messages, maxTokens: MOST_TOKENS }, ctx)) {
    if (event.type === 'text') firstMs ??= performance.now() - began
    if (event.type === 'usage') usage = event.usage
  }
  return helloOf(model, began, firstMs, usage?.output ?? 0)
}

const helloOf = (model: string, began: number, firstMs: number | undefined, output: number): Hello => ({
  model,
  ...(firstMs === undefined ? {} : { firstMs }),
  ms: performance.now() - began,
  output,
})

/** Asks through a server; the conversation that this makes there is deleted again. */
export async function helloThrough(
  server: ServerClient,
  provider: string,
  model: string | undefined,
  signal: AbortSignal
): Promise<Hello> {
  const body = { message: MESSAGE, provider, ...(model === undefined ? {} : { model }), tools: [], max_tokens: MOST_TOKENS }
  const began = performance.now()
  let firstMs: number | undefined
  let conversation: string | undefined
  try {
    for await (const { data } of server.stream('POST', '/api/v1/chat/stream', { signal, body })) {
      const event = JSON.parse(data) as ChatEvent
      if (event.type === 'start') conversation = event.conversation_id
      if (event.type === 'token' && event.content !== '') firstMs ??= performance.now() - began
      if (event.type === 'error') throw errorFromRecord(event)
      if (event.type === 'end' && event.provider !== provider) throw answeredByAnother(event.provider, event.model)
      if (event.type === 'end') return helloOf(event.model, began, firstMs, event.tokens_used.output)
    }
    throw streamBroken(server.url)
  } finally {
    if (conversation !== undefined) await forget(server, conversation)
  }
}

/** What is left behind is a conversation of two lines: no reason to call the provider bad. */
const forget = (server: ServerClient, conversation: string) =>
  server
    .request('DELETE', `/api/v1/conversations/${encodeURIComponent(conversation)}`, { signal: new AbortController().signal })
    .catch(() => {})

/** A failure in the words of whoever failed. */
export const failureText = (error: unknown): string => {
  const code = codeOf(error)
  return code === undefined || code === 'MODEL_FAILED' ? messageOf(error) : `${code}: ${messageOf(error)}`
}
