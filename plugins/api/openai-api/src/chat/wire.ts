import { randomUUID } from 'node:crypto'
import type { Citation, TokenLogprob, ToolCallPart, Usage } from '@svc/core/contracts'

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

/** Packed data of a provider in a message: clients of OpenRouter send `reasoning_details` back, some only those of a tool call. */
export const detailsWire = (data: string | undefined, call?: string) =>
  data === undefined
    ? {}
    : { reasoning_details: [{ type: 'reasoning.encrypted', format: 'svc-1', ...(call === undefined ? {} : { id: call }), data }] }

/** The same in a tool call: other clients keep the signature of a call as Gemini has it. */
export const callDataWire = (data: string | undefined) =>
  data === undefined ? {} : { extra_content: { google: { thought_signature: data } } }
