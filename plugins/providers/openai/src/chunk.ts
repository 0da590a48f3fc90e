import type { Citation, Json, ModelEvent, TokenLogprob, Usage } from '@svc/core/contracts'
import { countIn, isTree, textIn, treeIn } from '@svc/provider-http'

// The chunks of Chat Completions, and the values in them.

export interface WireCall {
  readonly index?: number | null
  readonly id?: string | null
  readonly function?: { readonly name?: string | null; readonly arguments?: unknown } | null
}
/** A piece of a message. `content` is text, or a list of pieces that can include reasoning. */
export interface WireDelta {
  readonly content?: string | null | readonly WirePiece[]
  readonly refusal?: string | null
  readonly reasoning_content?: string | null
  readonly reasoning?: string | null
  readonly reasoning_details?: readonly Json[] | null
  readonly tool_calls?: readonly WireCall[] | null
  readonly annotations?: unknown
}
interface WirePiece {
  readonly type?: string
  readonly text?: string
  readonly thinking?: readonly WirePiece[] | string
}
export interface WireChoice {
  readonly index?: unknown
  readonly delta?: WireDelta | null
  readonly message?: WireDelta | null
  readonly finish_reason?: string | null
  readonly logprobs?: unknown
  /** vLLM: the text of `stop` at which the answer ended. */
  readonly stop_reason?: unknown
}
export interface WireChunk {
  readonly choices?: readonly WireChoice[]
  readonly usage?: WireUsage | null
  readonly x_groq?: { readonly usage?: WireUsage | null } | null
  readonly error?: unknown
}

export type Emit = (event: ModelEvent) => void

/** Usage in OpenAI's form, with DeepSeek's field for cached tokens, and the fields of proxies for tokens written to a cache. */
export interface WireUsage {
  readonly prompt_tokens?: number | null
  readonly completion_tokens?: number | null
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: number | null
    readonly cache_write_tokens?: number | null
    readonly cache_creation_tokens?: number | null
  } | null
  readonly prompt_cache_hit_tokens?: number | null
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number | null } | null
}

export function usageOf(wire: WireUsage): Usage {
  const [input, output] = [count(wire.prompt_tokens) ?? 0, count(wire.completion_tokens) ?? 0]
  const details = wire.prompt_tokens_details
  const cached = count(details?.cached_tokens ?? wire.prompt_cache_hit_tokens)
  const written = Math.min(
    count(details?.cache_write_tokens ?? details?.cache_creation_tokens) ?? 0,
    input - Math.min(cached ?? 0, input)
  )
  const reasoning = count(wire.completion_tokens_details?.reasoning_tokens)
  return {
    input,
    output,
    ...(cached === undefined ? {} : { cached: Math.min(cached, input) }),
    ...(written > 0 ? { cacheWrite: written } : {}),
    ...(reasoning === undefined ? {} : { reasoning: Math.min(reasoning, output) }),
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.trunc(value) : undefined

/** OpenAI writes the probability 0 as -9999. JSON has no -Infinity. */
const LEAST = -9999

export function tokenOf(wire: unknown): TokenLogprob | undefined {
  const one = plainToken(wire)
  const alternatives = isTree(wire) && Array.isArray(wire.top_logprobs) ? wire.top_logprobs.map(plainToken) : []
  const top = alternatives.filter(alternative => alternative !== undefined)
  return one && (top.length > 0 ? { ...one, top } : one)
}

function plainToken(wire: unknown): Omit<TokenLogprob, 'top'> | undefined {
  const token = textIn(wire, 'token')
  const { logprob, bytes } = isTree(wire) ? wire : {}
  if (token === undefined) return undefined
  return {
    token,
    logprob: typeof logprob === 'number' && Number.isFinite(logprob) ? Math.min(logprob, 0) : LEAST,
    ...(Array.isArray(bytes) && bytes.every(isByte) ? { bytes } : {}),
  }
}

const isByte = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0 && Number(value) < 256

/** A source in the form of OpenAI and OpenRouter, or with its fields beside the type. */
export function cite(annotation: unknown, emit: Emit): void {
  if (textIn(annotation, 'type') !== 'url_citation') return
  const nested = treeIn(annotation, 'url_citation')
  const source = Object.keys(nested).length > 0 ? nested : annotation
  const [url, title, quote] = [textIn(source, 'url'), textIn(source, 'title'), textIn(source, 'content')]
  const [start, end] = [countIn(source, 'start_index'), countIn(source, 'end_index')]
  const citation: Citation = {
    ...(url === undefined ? {} : { url }),
    ...(title === undefined ? {} : { title }),
    ...(quote === undefined ? {} : { quote }),
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
  }
  if (Object.keys(citation).length > 0) emit({ type: 'citation', citation })
}

/** Emits the texts of a list of pieces. */
export function takePieces(pieces: readonly WirePiece[], emit: Emit): void {
  for (const { type, text, thinking } of pieces) {
    if (type === 'text' && typeof text === 'string' && text !== '') emit({ type: 'text', text })
    const thought =
      typeof thinking === 'string'
        ? thinking
        : (Array.isArray(thinking) ? thinking : []).map(piece => textIn(piece, 'text') ?? '').join('')
    if (thought !== '') emit({ type: 'reasoning', text: thought })
  }
}
