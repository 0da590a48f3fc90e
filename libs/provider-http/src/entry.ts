import type { ModelInfo } from '@svc/core/contracts'

/** A model in an entry of the configuration. */
export type ConfiguredModel =
  | string
  | {
      readonly id: string
      readonly context?: number
      readonly output?: number
      readonly tool_calling?: boolean
      readonly vision?: boolean
      readonly temperature?: boolean
      /** The model makes embeddings, and does not chat. */
      readonly embeddings?: boolean
    }

/** The keys that all entries of `providers` with an upstream share. */
export interface UpstreamEntry {
  readonly base_url?: string
  readonly api_key_env?: string
  readonly api_key_file?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly models?: readonly ConfiguredModel[]
}

const text = { type: 'string', minLength: 1 }
const limit = { type: 'integer', minimum: 1 }
const flag = { type: 'boolean' }
const model = {
  type: 'object',
  properties: { id: text, context: limit, output: limit, tool_calling: flag, vision: flag, temperature: flag, embeddings: flag },
  required: ['id'],
  additionalProperties: false,
}

/** JSON Schema of these keys. Spread it into a plugin's schema: `properties: { ...ENTRY, preset: … }`. */
export const ENTRY = {
  base_url: {
    ...text,
    description: 'Base URL of the server, without the path of a method: http or https, without credentials and query.',
  },
  api_key_env: {
    ...text,
    pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
    patternHint: 'must be the name of an environment variable',
    description: 'Environment variable that holds the key.',
  },
  api_key_file: { ...text, description: 'File that holds the key, instead of a variable.' },
  headers: {
    type: 'object',
    additionalProperties: { type: 'string', pattern: '^[\\t\\x20-\\x7e]*$', patternHint: 'must be one line of ASCII' },
    propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
    description: 'Headers to send with each request.',
  },
  models: {
    type: 'array',
    items: { anyOf: [text, model] },
    minItems: 1,
    description:
      'Models of this entry, instead of the list of the server: an id, or `{id, context, output, tool_calling, vision, temperature, embeddings}`. The first is the default.',
  },
} as const

/** Converts a configured model to the form of the contract. */
export function modelInfo(model: ConfiguredModel): ModelInfo {
  if (typeof model === 'string') return { id: model }
  const { tool_calling, vision, embeddings, ...info } = model
  if (embeddings === true) return embeddingModel(info)
  const features = { ...(tool_calling === undefined ? {} : { tool_calling }), ...(vision === undefined ? {} : { vision }) }
  return Object.keys(features).length === 0 ? info : { ...info, features }
}

/** Describes a model that makes embeddings, and does not chat. */
export const embeddingModel = (info: ModelInfo): ModelInfo => ({
  ...info,
  features: { tool_calling: false, streaming: false, vision: false, supports: ['embeddings'] },
})

/** True if a model makes embeddings, by the features of its description. */
export const embeds = ({ features }: ModelInfo): boolean => features?.supports?.includes('embeddings') === true
