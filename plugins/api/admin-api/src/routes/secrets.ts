import { INTEGER, list, nullable, object, ok, STRING, words } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { Route, SecretInfo, Secrets } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'

const PATH = '/api/v1/secrets'
/** Bytes of UTF-8: the service counts them. */
const LONGEST_VALUE = 65_536

const SECRET: JsonSchema = {
  ...(object({
    name: STRING,
    source: { ...(words('environment', 'file', 'sealed') as object), description: 'Only a sealed one can be changed over HTTP.' },
    state: words('ready', 'missing', 'no_key', 'unreadable'),
    created_at: { type: ['string', 'null'], format: 'date-time' },
    changed_at: { type: ['string', 'null'], format: 'date-time' },
    key_id: { ...(nullable('string') as object), description: 'Identifies the key that sealed it.' },
  }) as object),
  title: 'Secret',
}

/** Routes for secrets. No answer contains a value. */
export const createSecretRoutes = (secrets: Secrets, publish: Publish): Record<string, Route> => ({
  ...valueRoutes(secrets, publish),
  ...wholeRoutes(secrets, publish),
})

const valueRoutes = (secrets: Secrets, publish: Publish): Record<string, Route> => ({
  secret_set: {
    method: 'PUT',
    path: `${PATH}/:name`,
    summary: 'Store a secret, or replace its value',
    description:
      'Plugins that read the secret use the new value at once. Settings that refer to it use it after the next reload (POST /api/v1/reload).',
    scope: 'admin',
    body: {
      ...(object({
        value: {
          type: 'string',
          minLength: 1,
          maxLength: LONGEST_VALUE,
          writeOnly: true,
          description: 'The value. No answer shows it.',
        },
      }) as object),
      additionalProperties: false,
    },
    responses: ok('The secret without its value.', SECRET),
    async handle({ params, body }, ctx) {
      const name = params.name!
      const before = (await secrets.list(ctx)).find(secret => secret.name === name)
      const after = await secrets.set(name, (body as { readonly value: string }).value, ctx)
      publish(
        { type: 'secret_set', subject: `secrets/${name}`, before: before && changedOf(before), after: changedOf(after) },
        ctx
      )
      return { body: secretRecord(after) }
    },
  },
  secret_remove: {
    method: 'DELETE',
    path: `${PATH}/:name`,
    summary: 'Remove a sealed secret',
    scope: 'admin',
    responses: ok('The secret is removed.', object({ success: { type: 'boolean' } })),
    async handle({ params }, ctx) {
      const name = params.name!
      const before = (await secrets.list(ctx)).find(secret => secret.name === name)
      await secrets.remove(name, ctx)
      publish({ type: 'secret_removed', subject: `secrets/${name}`, before: before && changedOf(before) }, ctx)
      return { body: { success: true } }
    },
  },
})

const wholeRoutes = (secrets: Secrets, publish: Publish): Record<string, Route> => ({
  secrets: {
    method: 'GET',
    path: PATH,
    summary: 'List the secrets without their values',
    scope: 'admin',
    responses: ok('The secrets by name.', object({ secrets: list(SECRET) })),
    handle: async (_request, ctx) => ({ body: { secrets: (await secrets.list(ctx)).map(secretRecord) } }),
  },
  secrets_reseal: {
    method: 'POST',
    path: `${PATH}/reseal`,
    summary: 'Seal all secrets again with the current key',
    scope: 'admin',
    responses: ok('Earlier keys are not needed any more.', object({ resealed: INTEGER, key_id: STRING })),
    async handle(_request, ctx) {
      const { resealed, keyId } = await secrets.reseal(ctx)
      publish({ type: 'secrets_resealed', subject: 'secrets', after: { resealed, key_id: keyId } }, ctx)
      return { body: { resealed, key_id: keyId } }
    },
  },
})

const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

const changedOf = ({ source, changedAt, keyId }: SecretInfo) => ({ source, changed_at: time(changedAt), key_id: keyId ?? null })

const secretRecord = (secret: SecretInfo) => ({
  name: secret.name,
  state: secret.state,
  created_at: time(secret.createdAt),
  ...changedOf(secret),
})
