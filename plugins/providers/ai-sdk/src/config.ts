import { ENTRY, type UpstreamEntry } from '@svc/provider-http/entry'
import type { Metadata } from './sdk.ts'

/** An entry of `providers` of type `ai-sdk`. */
export interface AiSdkConfig extends UpstreamEntry {
  readonly package: string
  readonly export?: string
  readonly options?: { readonly [name: string]: unknown }
  readonly provider_options?: Metadata
}

const text = { type: 'string', minLength: 1 }

/** Its JSON Schema. */
export const CONFIG = {
  type: 'object',
  properties: {
    package: {
      ...text,
      description: 'The AI SDK provider package, installed in this folder or in the svc home: `@ai-sdk/mistral`.',
    },
    export: {
      ...text,
      pattern: '^[A-Za-z_$][\\w$]*(\\.[A-Za-z_$][\\w$]*)?$',
      patternHint: 'must be the name of an export, and after a dot of a method: createOpenAI.chat',
      description:
        'The export that makes its provider, if svc cannot find it; after a dot the method that makes its models: `createOpenAI.chat`.',
    },
    options: { type: 'object', description: "Other options of that maker, in the package's own words; no keys." },
    provider_options: {
      type: 'object',
      additionalProperties: { type: 'object' },
      description: "Options of each call, by the provider's name in the SDK: `{openai: {store: false}}`.",
    },
    ...ENTRY,
    models: {
      ...ENTRY.models,
      description:
        'Its models: an id, or `{id, context, output, tool_calling, vision, temperature}`; the first is the default. Without them any id is passed on.',
    },
  },
  required: ['package'],
  additionalProperties: false,
} as const
