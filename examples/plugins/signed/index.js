import { definePlugin, schema } from '@svc/core'
import { AuthSchemes, Counts } from '@svc/core/contracts'
import { createSigned } from './scheme.js'

const SCOPES = ['chat', 'read', 'workflows', 'tools', 'admin']

/** @type {import('@svc/core').Schema<{ window_s: number, keys: Record<string, string[]> }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  properties: {
    window_s: {
      type: 'integer',
      minimum: 1,
      maximum: 3600,
      default: 300,
      description: 'Seconds that the time of a request can differ from the clock of the server',
    },
    keys: {
      type: 'object',
      propertyNames: { pattern: '^[a-z][a-z0-9]{0,31}$' },
      additionalProperties: { type: 'array', items: { enum: SCOPES }, minItems: 1 },
      default: {},
      description: 'Scopes by the id of a key; the secret of `deploy` is in SIGNED_SECRET_DEPLOY',
    },
  },
})

export default definePlugin({
  section: 'server.auth.signed',
  config,
  requires: { counts: Counts },
  setup(scope, { counts }) {
    const { keys, window_s: seconds } = scope.config
    const entries = Object.entries(keys).map(([id, scopes]) => {
      const variable = `SIGNED_SECRET_${id.toUpperCase()}`
      return /** @type {const} */ ([id, { secret: process.env[variable], variable, scopes }])
    })
    scope.add(AuthSchemes, 'signed', createSigned({ keys: new Map(entries), windowMs: seconds * 1000, counts }))
  },
})
