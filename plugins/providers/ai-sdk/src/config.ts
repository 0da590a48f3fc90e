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

/** JSON Schema of an entry. */
export const CONFIG = {
  type: 'object',
  properties: {
    package: {
      ...text,
      description: 'AI SDK provider package, installed in this folder or in the svc home: `@ai-sdk/mistral`.',
    },
    export: {
      ...text,
      pattern: '^[A-Za-z_$][\\w$]*(\\.[A-Za-z_$][\\w$]*)?$',
      patternHint: 'must be the name of an export, optionally with a method after a dot: createOpenAI.chat',
      description:
        'Export that creates the provider, if svc cannot find it. The method that creates models can follow after a dot: `createOpenAI.chat`.',
    },
    options: { type: 'object', description: 'Further options of the provider factory, as the package documents them. No keys.' },
    provider_options: {
      type: 'object',
      additionalProperties: { type: 'object' },
      description: 'Options of each call, by the name of the provider in the SDK: `{openai: {store: false}}`.',
    },
    ...ENTRY,
    models: {
      ...ENTRY.models,
      description:
        'Models of this entry: an id, or `{id, context, output, tool_calling, vision, temperature, embeddings}`. The first is the default. Without this key, any id is accepted.',
    },
  },
  required: ['package'],
  additionalProperties: false,
} as const
