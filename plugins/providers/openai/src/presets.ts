import type { ModelFeature, ModelProtocol } from '@svc/core/contracts'
import { CHAT, type ServerFeatures } from './features.ts'

/** The differences of a server, or kind of server, from other chat completions servers. */
export interface Preset extends ServerFeatures {
  /** If absent, the entry must name it. */
  readonly baseUrl?: string
  /** The variable that holds the key if the entry names none. */
  readonly keyEnv?: string
  /** True if the server requires a key. */
  readonly keyRequired: boolean
  /** `bearer`: the Authorization header; else the header that holds only the key. */
  readonly keyHeader: 'bearer' | 'api-key'
  /** Name of the field for the token limit. */
  readonly limitField: 'max_tokens' | 'max_completion_tokens'
  /** True if the server reports usage only on request, by `stream_options`. */
  readonly streamOptions: boolean
  /** The way to send a reply schema. `prompt`: the request asks for JSON, and a system message describes the schema. */
  readonly schema: 'json_schema' | 'prompt'
  /** Value of `tool_choice` that forces a tool call. */
  readonly mustCall: 'required' | 'any'
  /** The message for images of a tool result: the tool message, or a user message after it. */
  readonly toolImages: 'tool' | 'user'
  /** Required length of tool call ids, which have letters and digits only. */
  readonly callIdLength?: number
  /** The field that returns the reasoning of an assistant message. */
  readonly reasoningField?: 'reasoning_content'
  /** True if the server sends blocks of reasoning that requests must return unchanged. */
  readonly reasoningDetails?: boolean
  /** True if the server accepts the query `api-version`. */
  readonly apiVersion?: boolean
  /** True if the server accepts `prompt_cache_key`. Some servers refuse unknown fields. */
  readonly cacheKey?: boolean
  readonly vision: boolean
  /** Set if the server accepts the whole protocol: an original request is sent as it is. */
  readonly protocol?: ModelProtocol
  /** True if `reasoning: {max_tokens}` limits the reasoning. */
  readonly reasoningTokens?: boolean
  /** True if a part of a message can have `cache_control`. */
  readonly cacheControl?: boolean
  /** True if a refusal goes back in a field of its own. */
  readonly refusals?: boolean
  /** Name of the field for the seed. */
  readonly seedField?: 'random_seed'
  /** Name of the field for the length of vectors. */
  readonly dimensionsField?: 'output_dimension'
  /** True if the server sends vectors as base64 on request, which is a third of the size. */
  readonly base64?: boolean
  /** Preferred default models: the first that the server lists is the default. */
  readonly prefer?: readonly string[]
  /** Path of the health check. The request is never billed. */
  readonly probe: string
}

const COMMON = {
  keyRequired: true,
  keyHeader: 'bearer',
  limitField: 'max_tokens',
  streamOptions: true,
  schema: 'json_schema',
  mustCall: 'required',
  toolImages: 'user',
  vision: true,
  probe: '/models',
  supports: CHAT,
} as const
const LOCAL = { ...COMMON, keyRequired: false } as const

const without = (...left: readonly ModelFeature[]) => CHAT.filter(feature => !left.includes(feature))

/** Fields that OpenAI's own servers take. */
const OPENAI = { reasoningModels: true, protocol: 'openai-chat', refusals: true, base64: true } as const

/** Any server that has no preset below. It gets every field of the protocol. Whether it uses them, nothing tells. */
const compatible: Preset = { ...LOCAL, supports: [...CHAT, 'top_k', 'audio', 'reasoning_effort'] }

export const PRESETS = {
  compatible,
  openai: {
    ...COMMON,
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: 'OPENAI_API_KEY',
    limitField: 'max_completion_tokens',
    ...OPENAI,
    cacheKey: true,
    prefer: ['gpt-5-mini', 'gpt-4.1-mini', 'gpt-4o-mini'],
  },
  azure: {
    ...COMMON,
    keyEnv: 'AZURE_OPENAI_API_KEY',
    keyHeader: 'api-key',
    limitField: 'max_completion_tokens',
    apiVersion: true,
    ...OPENAI,
    cacheKey: true,
  },
  // https://docs.ollama.com/api/openai-compatibility
  ollama: {
    ...LOCAL,
    baseUrl: 'http://localhost:11434/v1',
    supports: [
      ...without('n', 'logit_bias', 'parallel_tool_calls', 'strict_tools', 'tool_choice', 'image_urls', 'files'),
      'reasoning_effort',
    ],
  },
  // https://lmstudio.ai/docs/app/api/endpoints/openai
  lmstudio: {
    ...LOCAL,
    baseUrl: 'http://localhost:1234/v1',
    supports: [...without('n', 'logprobs', 'parallel_tool_calls', 'strict_tools', 'json', 'image_urls', 'files'), 'top_k'],
  },
  // https://docs.vllm.ai/en/latest/serving/openai_compatible_server
  vllm: {
    ...LOCAL,
    baseUrl: 'http://localhost:8000/v1',
    supports: [...without('strict_tools', 'files'), 'top_k', 'audio', 'reasoning_effort'],
    protocol: 'openai-chat',
    base64: true,
  },
  groq: {
    ...COMMON,
    baseUrl: 'https://api.groq.com/openai/v1',
    keyEnv: 'GROQ_API_KEY',
    limitField: 'max_completion_tokens',
    prefer: ['llama-3.3-70b-versatile', 'openai/gpt-oss-120b'],
    // https://console.groq.com/docs/openai
    supports: [
      ...without('n', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'strict_tools', 'files'),
      'reasoning_effort',
    ],
  },
  openrouter: {
    ...COMMON,
    baseUrl: 'https://openrouter.ai/api/v1',
    keyEnv: 'OPENROUTER_API_KEY',
    reasoningDetails: true,
    prefer: ['openrouter/auto'],
    // The model list is public, so it does not verify the key.
    probe: '/key',
    // https://openrouter.ai/docs/api-reference/parameters
    supports: [...without('n', 'strict_tools'), 'top_k', 'audio', 'reasoning_effort', 'cache_hints'],
    protocol: 'openai-chat',
    reasoningTokens: true,
    cacheControl: true,
  },
  mistral: {
    ...COMMON,
    baseUrl: 'https://api.mistral.ai/v1',
    keyEnv: 'MISTRAL_API_KEY',
    // The server always reports usage, and refuses unknown fields.
    streamOptions: false,
    mustCall: 'any',
    // A user message cannot follow a tool message.
    toolImages: 'tool',
    callIdLength: 9,
    prefer: ['mistral-small-latest'],
    // https://docs.mistral.ai/api
    supports: without('logit_bias', 'logprobs', 'high_temperature', 'files'),
    seedField: 'random_seed',
    dimensionsField: 'output_dimension',
  },
  deepseek: {
    ...COMMON,
    baseUrl: 'https://api.deepseek.com/v1',
    keyEnv: 'DEEPSEEK_API_KEY',
    schema: 'prompt',
    reasoningField: 'reasoning_content',
    vision: false,
    prefer: ['deepseek-chat'],
    // https://api-docs.deepseek.com/api/create-chat-completion
    supports: without('seed', 'n', 'logit_bias', 'parallel_tool_calls', 'strict_tools', 'image_urls', 'files'),
  },
  together: {
    ...COMMON,
    baseUrl: 'https://api.together.xyz/v1',
    keyEnv: 'TOGETHER_API_KEY',
    // https://docs.together.ai/reference/chat-completions-1: its `logprobs` is a number
    supports: [
      ...without('logprobs', 'parallel_tool_calls', 'strict_tools', 'high_temperature', 'files'),
      'top_k',
      'reasoning_effort',
    ],
  },
} as const satisfies Readonly<Record<string, Preset>>

export type PresetName = keyof typeof PRESETS
export const PRESET_NAMES = Object.keys(PRESETS) as PresetName[]
