import { randomUUID } from 'node:crypto'
import type { Citation, TokenLogprob, ToolCallPart, Usage } from '@svc/core/contracts'
import { encodeOpaque, type OpaqueData } from '../opaque.ts'

export const newId = () => `chatcmpl-${randomUUID().replaceAll('-', '')}`

export const nowSeconds = () => Math.floor(Date.now() / 1000)

export const usageWire = ({ input, output, cached, cacheWrite, reasoning }: Usage) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: {
    cached_tokens: cached ?? 0,
    ...(cacheWrite === undefined ? {} : { cache_write_tokens: cacheWrite }),
  },
  completion_tokens_details: { reasoning_tokens: reasoning ?? 0 },
})

export const logprobWire = ({ token, logprob, bytes, top }: TokenLogprob) => ({
  token,
  logprob,
  bytes: bytes ?? [...Buffer.from(token)],
  top_logprobs: (top ?? []).map(other => ({
    token: other.token,
    logprob: other.logprob,
    bytes: other.bytes ?? [...Buffer.from(other.token)],
  })),
})

export const citationWire = ({ url = '', title = '', quote, start = 0, end = 0 }: Citation) => ({
  type: 'url_citation',
  url_citation: { url, title, start_index: start, end_index: end, ...(quote === undefined ? {} : { content: quote }) },
})

export const argumentsText = ({ arguments: args, invalid }: ToolCallPart) => invalid ?? JSON.stringify(args)

/** Data of a provider in an entry of `reasoning_details`, which clients of OpenRouter send back. */
export const detailWire = (opaque: OpaqueData, index: number) => ({
  type: 'reasoning.encrypted',
  format: 'svc-1',
  index,
  data: encodeOpaque(opaque),
})

/** Data of a tool call where clients of Gemini keep its signature. */
export const callDataWire = ({ providerData: data }: ToolCallPart, provider: string) =>
  data === undefined ? {} : { extra_content: { google: { thought_signature: encodeOpaque({ provider, of: 'call', data }) } } }
