import { list, nullable, object, ok, STRING } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import { API_SCOPES, type Route, type TokenInfo, type TokenRequest, type Tokens } from '@svc/core/contracts'

const PATH = '/api/v1/tokens'
const DAY_S = 86_400
const [LONGEST_S, USUAL_S] = [3_650 * DAY_S, 30 * DAY_S]

const TOKEN: JsonSchema = {
  ...(object({
    id: STRING,
    name: STRING,
    scopes: list(STRING),
    created_at: { type: 'string', format: 'date-time' },
    expires_at: { type: 'string', format: 'date-time' },
    last_used_at: {
      ...(nullable('string') as object),
      format: 'date-time',
      description: 'The last accepted request, accurate to about a minute.',
    },
  }) as object),
  title: 'Token',
}

/** Routes for access tokens. The service publishes the changes. */
export const createTokenRoutes = (tokens: Tokens): Record<string, Route> => ({
  tokens: {
    method: 'GET',
    path: PATH,
    summary: 'List the access tokens without their text',
    description: 'With a token, a caller sees the tokens with the same name. With the scope `admin`, a caller sees all tokens.',
    scope: 'read',
    responses: ok('The tokens by name, then by age.', object({ tokens: list(TOKEN) })),
    handle: async (_request, ctx) => ({ body: { tokens: (await tokens.list(ctx)).map(tokenRecord) } }),
  },
  token_create: {
    method: 'POST',
    path: PATH,
    summary: 'Create an access token; only this answer shows its text',
    scope: 'admin',
    body: {
      ...(object(
        {
          name: { type: 'string', minLength: 1, maxLength: 64, description: 'The name of its holder. Default: its id.' },
          scopes: {
            type: 'array',
            minItems: 1,
            maxItems: API_SCOPES.names.length,
            items: { type: 'string', enum: API_SCOPES.names },
            description: 'At most those of the caller. Default: all of the caller except admin.',
          },
          ttl_s: { type: 'integer', minimum: 1, maximum: LONGEST_S, description: `Lifetime in seconds; default ${USUAL_S}.` },
        },
        []
      ) as object),
      additionalProperties: false,
    },
    responses: {
      '201': {
        description: 'The token and its text.',
        schema: object({ token: { ...(STRING as object), description: 'The text, `svc_…`.' }, info: TOKEN }),
      },
    },
    async handle({ body }, ctx) {
      const { ttl_s: seconds = USUAL_S, ...given } = body as Partial<TokenRequest> & { readonly ttl_s?: number }
      const { token, info } = await tokens.create({ ...given, ttlMs: seconds * 1000 }, ctx)
      return { status: 201, headers: { 'cache-control': 'no-store' }, body: { token, info: tokenRecord(info) } }
    },
  },
  token_revoke: {
    method: 'DELETE',
    path: `${PATH}/:id`,
    summary: 'Revoke an access token at once',
    description: 'The answer comes when no worker of any server accepts the token any more. A name revokes all tokens of it.',
    scope: 'admin',
    responses: ok('The revoked tokens.', object({ revoked: list(TOKEN) })),
    handle: async ({ params }, ctx) => ({ body: { revoked: (await tokens.revoke(params.id!, ctx)).map(tokenRecord) } }),
  },
})

const tokenRecord = ({ id, name, scopes, created, expires, used }: TokenInfo) => ({
  id,
  name,
  scopes,
  created_at: created,
  expires_at: expires,
  last_used_at: used ?? null,
})
