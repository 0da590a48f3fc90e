import type { JsonSchema, ReservedSection } from '@svc/core'

/** Documented keys that no loaded plugin owns. svc checks them, and enabling one reports that no plugin acts on it. */
export interface DocumentedConfig {
  server?: {
    workers?: number
    hang_timeout_ms?: number
  }
  cluster?: {
    name?: string
    roles?: ('http' | 'runs')[]
  }
}

const closed = (properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const text: JsonSchema = { type: 'string', minLength: 1 }
const texts: JsonSchema = { type: 'array', items: text }
const flag: JsonSchema = { type: 'boolean' }
const count = (minimum: number): JsonSchema => ({ type: 'integer', minimum })
const port: JsonSchema = { type: 'integer', minimum: 0, maximum: 65_535 }

const isOn = (value: unknown) => value === true
const orPlugin = (section: string) => `or add a plugin that owns ${section} to "plugins"`

/** Keys that `svc serve` itself acts on. */
export const SERVED = [
  { keys: ['server', 'workers'], usual: 1, description: 'Number of worker processes on the same port.' },
  {
    keys: ['server', 'hang_timeout_ms'],
    usual: 10_000,
    description: 'Milliseconds after which svc kills and replaces a worker with a blocked event loop.',
  },
  {
    keys: ['cluster', 'name'],
    usual: undefined,
    description:
      'Servers with one store and one name act as one. Default: each server for itself; with a store in PostgreSQL, svc.',
  },
  {
    keys: ['cluster', 'roles'],
    usual: ['http', 'runs'],
    description:
      'What this server does: `http` serves the API, `runs` executes workflow runs, jobs and schedules. Every server serves its health and metrics.',
  },
] as const

/** The sections for the host. A plugin that owns one of them replaces it. */
export const RESERVED: readonly ReservedSection[] = [
  // these four are SERVED
  {
    section: 'cluster',
    json: closed({
      name: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' },
      roles: { type: 'array', items: { enum: ['http', 'runs'] }, minItems: 1, uniqueItems: true },
    }),
  },
  { section: 'server.workers', json: count(1) },
  { section: 'server.hang_timeout_ms', json: count(100) },
  {
    section: 'server.rate_limit',
    json: closed({
      enabled: flag,
      requests_per_minute: count(1),
      requests_per_day: count(1),
      by: { enum: ['address', 'principal'] },
    }),
    asks: [
      {
        key: 'enabled',
        when: isOn,
        what: 'rate limits',
        hint: `Set server.rate_limit.enabled to false, ${orPlugin('server.rate_limit')}`,
      },
    ],
  },
  { section: 'server.auth.api_key_env', json: text },
  { section: 'server.auth.oidc', json: closed({ issuer: text, audience: text, jwks_uri: text, scope_claim: text }) },
  {
    section: 'mcp.server',
    json: closed({
      enabled: flag,
      host: text,
      port,
      tools: texts,
      sets: { type: 'object', additionalProperties: texts },
      auth: closed({ required: flag, api_key_env: text }),
    }),
    asks: [
      {
        key: 'enabled',
        when: isOn,
        what: 'an MCP server',
        hint: `Remove --mcp and mcp.server.enabled, ${orPlugin('mcp.server')}`,
      },
    ],
  },
  {
    section: 'mcp',
    json: closed({
      clients: { type: 'array', items: { type: 'object' } },
      recheck_s: { type: 'number', minimum: 0 },
    }),
    asks: [
      {
        key: 'clients',
        when: value => Array.isArray(value) && value.length > 0,
        what: 'connections to tool servers',
        hint: `Remove mcp.clients, ${orPlugin('mcp')}`,
      },
    ],
  },
  {
    section: 'workflows',
    json: closed({
      roots: texts,
      sync_wait_ms: count(0),
      run_timeout_s: count(1),
      node_timeout: text,
      max_age: text,
      retention: text,
      max_steps: count(1),
      max_output_bytes: count(1),
      max_run_bytes: count(1),
      at_once: count(1),
      secrets: { type: 'object' },
    }),
  },
  {
    section: 'cache',
    json: closed({ in: { enum: ['memory', 'store'] }, max_bytes: count(1024) }),
    asks: [
      {
        key: '',
        when: () => true,
        what: 'a cache in memory or in the store',
        hint: `If redis.url is set, Redis has the cache: remove the section cache, or set redis.use without "cache". Otherwise remove it, ${orPlugin('cache')}`,
      },
    ],
  },
  { section: 'recommend', json: closed({ approval: flag }) },
]
