/** What one server, or one kind of server, does otherwise than others that speak chat completions. */
export interface Preset {
  /** Absent: an entry must name it. */
  readonly baseUrl?: string
  /** The variable that holds the key where an entry names none. */
  readonly keyEnv?: string
  /** Whether it answers without a key. */
  readonly keyRequired: boolean
  /** `bearer`: in Authorization; else the header that holds the key as it is. */
  readonly keyHeader: 'bearer' | 'api-key'
  /** How the limit of tokens is called. */
  readonly limitField: 'max_tokens' | 'max_completion_tokens'
  /** Whether it must be asked for usage by `stream_options`, and knows that. */
  readonly streamOptions: boolean
  /** How it takes a schema for the reply; `prompt`: the request asks for JSON, and a system message describes the schema. */
  readonly schema: 'json_schema' | 'prompt'
  /** The word for "some tool must be called". */
  readonly mustCall: 'required' | 'any'
  /** Where images of a tool's result go: with it, or in a message of the user after it. */
  readonly toolImages: 'tool' | 'user'
  /** Exactly so many letters and digits must an id of a tool call have. */
  readonly callIdLength?: number
  /** The field in which an assistant's message must give its reasoning back. */
  readonly reasoningField?: 'reasoning_content'
  /** Sends blocks of reasoning that must be given back as they were. */
  readonly reasoningDetails?: boolean
  /** Takes a query `api-version`. */
  readonly apiVersion?: boolean
  readonly vision: boolean
  /** Models that take no temperature. */
  readonly noTemperature?: RegExp
  /** The first of these that it lists is the default; then all others in its order. */
  readonly prefer?: readonly string[]
  /** What is asked to see whether it answers; never billed. */
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

/** A server that is none of those below. */
const compatible: Preset = LOCAL

export const PRESETS = {
  compatible,
  openai: {
    ...COMMON,
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: 'OPENAI_API_KEY',
    limitField: 'max_completion_tokens',
    noTemperature: REASONING_MODELS,
    prefer: ['gpt-5-mini', 'gpt-4.1-mini', 'gpt-4o-mini'],
  },
  azure: {
    ...COMMON,
    keyEnv: 'AZURE_OPENAI_API_KEY',
    keyHeader: 'api-key',
    limitField: 'max_completion_tokens',
    apiVersion: true,
    noTemperature: REASONING_MODELS,
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
    // its list is open to everybody: it would prove no key
    probe: '/key',
  },
  mistral: {
    ...COMMON,
    baseUrl: 'https://api.mistral.ai/v1',
    keyEnv: 'MISTRAL_API_KEY',
    // tells usage unasked, and refuses fields it does not know
    streamOptions: false,
    mustCall: 'any',
    // a message of the user may not follow one of a tool
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
