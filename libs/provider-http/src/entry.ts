import type { ModelInfo } from '@svc/core/contracts'

/** A model as an entry of the configuration names it. */
export type ConfiguredModel =
  | string
  | {
      readonly id: string
      readonly context?: number
      readonly output?: number
      readonly tool_calling?: boolean
      readonly vision?: boolean
      readonly temperature?: boolean
    }

/** What all entries of `providers` with an upstream have. */
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
  properties: { id: text, context: limit, output: limit, tool_calling: flag, vision: flag, temperature: flag },
  required: ['id'],
  additionalProperties: false,
}

/** The parts of their JSON Schema: `properties: { ...ENTRY, preset: … }`. */
export const ENTRY = {
  base_url: {
    ...text,
    description: 'The address of its server, up to the path of its methods: http or https, without credentials and query.',
  },
  api_key_env: {
    ...text,
    pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
    patternHint: 'must be the name of an environment variable',
    description: 'The environment variable that holds the key.',
  },
  api_key_file: { ...text, description: 'The file that holds the key, instead of a variable.' },
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
      'Its models, instead of those the server lists: an id, or `{id, context, output, tool_calling, vision, temperature}`; the first is the default.',
  },
} as const

/** A configured model as the contract has it. */
export function modelInfo(model: ConfiguredModel): ModelInfo {
  if (typeof model === 'string') return { id: model }
  const { tool_calling, vision, ...info } = model
  const features = { ...(tool_calling === undefined ? {} : { tool_calling }), ...(vision === undefined ? {} : { vision }) }
  return Object.keys(features).length === 0 ? info : { ...info, features }
}
