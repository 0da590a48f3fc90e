/** The differences of a server, or kind of server, from other chat completions servers. */
export interface Preset {
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
  /** Models that take no temperature. */
  readonly noTemperature?: RegExp
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
} as const
const LOCAL = { ...COMMON, keyRequired: false } as const
const REASONING_MODELS = /^(o\d|gpt-5(?!.*chat))/

/** Any server that has no preset below. */
const compatible: Preset = LOCAL

export const PRESETS = {
  compatible,
  openai: {
    ...COMMON,
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: 'OPENAI_API_KEY',
    limitField: 'max_completion_tokens',
    noTemperature: REASONING_MODELS,
    cacheKey: true,
    prefer: ['gpt-5-mini', 'gpt-4.1-mini', 'gpt-4o-mini'],
  },
  azure: {
    ...COMMON,
    keyEnv: 'AZURE_OPENAI_API_KEY',
    keyHeader: 'api-key',
    limitField: 'max_completion_tokens',
    apiVersion: true,
    noTemperature: REASONING_MODELS,
    cacheKey: true,
  },
  ollama: { ...LOCAL, baseUrl: 'http://localhost:11434/v1' },
  lmstudio: { ...LOCAL, baseUrl: 'http://localhost:1234/v1' },
  vllm: { ...LOCAL, baseUrl: 'http://localhost:8000/v1' },
  groq: {
    ...COMMON,
    baseUrl: 'https://api.groq.com/openai/v1',
    keyEnv: 'GROQ_API_KEY',
    limitField: 'max_completion_tokens',
    prefer: ['llama-3.3-70b-versatile', 'openai/gpt-oss-120b'],
  },
  openrouter: {
    ...COMMON,
    baseUrl: 'https://openrouter.ai/api/v1',
    keyEnv: 'OPENROUTER_API_KEY',
    reasoningDetails: true,
    prefer: ['openrouter/auto'],
    // The model list is public, so it does not verify the key.
    probe: '/key',
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
  },
  deepseek: {
    ...COMMON,
    baseUrl: 'https://api.deepseek.com/v1',
    keyEnv: 'DEEPSEEK_API_KEY',
    schema: 'prompt',
    reasoningField: 'reasoning_content',
    vision: false,
    prefer: ['deepseek-chat'],
  },
  together: { ...COMMON, baseUrl: 'https://api.together.xyz/v1', keyEnv: 'TOGETHER_API_KEY' },
} as const satisfies Readonly<Record<string, Preset>>

export type PresetName = keyof typeof PRESETS
export const PRESET_NAMES = Object.keys(PRESETS) as PresetName[]
