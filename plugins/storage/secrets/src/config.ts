import { schema, SECRET_NAME } from '@svc/core'

/** Where the value of a secret comes from, if not from the store. */
export type Source = { readonly env: string } | { readonly file: string }

export interface SecretsConfig {
  readonly key_file?: string
  readonly sources: Readonly<Record<string, Source>>
}

const closed = (key: string, description: string) => ({
  type: 'object',
  properties: { [key]: { type: 'string', minLength: 1, description } },
  required: [key],
  additionalProperties: false,
})

export const CONFIG = schema<SecretsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    key_file: {
      type: 'string',
      minLength: 1,
      description:
        'File with the key that seals secrets in the store, as Base64 or hexadecimal digits; earlier keys follow, one per line. The variable SVC_SECRETS_KEY takes precedence.',
    },
    sources: {
      type: 'object',
      default: {},
      propertyNames: { pattern: SECRET_NAME.source },
      description: 'Secrets from variables and files, by name. Their values are never stored.',
      additionalProperties: {
        oneOf: [
          closed('env', 'Environment variable with the value.'),
          closed('file', 'File with the value. One line break at its end is not part of the value.'),
        ],
      },
    },
  },
})
