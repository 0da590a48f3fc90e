import type { ConfigTree } from '@svc/core'

/** The plugins that come with svc. A configuration adds plugins by name, and removes one with `{ use, enabled: false }`. */
const CURATED = [
  '@svc/plugin-http',
  '@svc/plugin-rest',
  '@svc/plugin-admin-api',
  '@svc/plugin-manager',
  '@svc/plugin-openai-api',
  '@svc/plugin-anthropic-api',
  '@svc/plugin-gemini-api',
  '@svc/plugin-agui',
  '@svc/plugin-connect',
  '@svc/plugin-console',
  '@svc/plugin-docs-page',
  '@svc/plugin-acp',
  '@svc/plugin-mcp-server',
  '@svc/plugin-mcp-bridge',
  '@svc/plugin-mcp-client',
  '@svc/plugin-event-feed',
  '@svc/plugin-webhooks',
  '@svc/plugin-logs',
  '@svc/plugin-metrics',
  '@svc/plugin-traces',
  '@svc/plugin-usage',
  '@svc/plugin-rate-limit',
  '@svc/plugin-auth-api-key',
  '@svc/plugin-auth-bearer',
  '@svc/plugin-auth-oidc',
  '@svc/plugin-chat',
  '@svc/plugin-model-calls',
  '@svc/plugin-named-models',
  '@svc/plugin-chat-policy',
  '@svc/plugin-chat-cache',
  '@svc/plugin-models',
  '@svc/plugin-conversations',
  '@svc/plugin-evaluations',
  '@svc/plugin-selection',
  '@svc/plugin-modes',
  '@svc/plugin-provider-local',
  '@svc/plugin-provider-openai',
  '@svc/plugin-provider-anthropic',
  '@svc/plugin-provider-google',
  '@svc/plugin-provider-ai-sdk',
  '@svc/plugin-tools-time',
  '@svc/plugin-tools-files',
  '@svc/plugin-tools-web',
  '@svc/plugin-tools-text',
  '@svc/plugin-tools-search',
  '@svc/plugin-tools-git',
  '@svc/plugin-tools-code',
  '@svc/plugin-sandbox-quickjs',
  '@svc/plugin-tools-shell',
  '@svc/plugin-sandbox-process',
  '@svc/plugin-isolation',
  '@svc/plugin-bus-store',
  '@svc/plugin-queue-store',
  '@svc/plugin-jobs',
  '@svc/plugin-schedules',
  '@svc/plugin-workflow-nodes',
  '@svc/plugin-workflows',
  '@svc/plugin-teams',
  '@svc/plugin-recommend',
  '@svc/plugin-verticals',
  '@svc/plugin-vertical-coding',
  '@svc/plugin-vertical-research',
  '@svc/plugin-vertical-devops',
  '@svc/plugin-vertical-data-analysis',
  '@svc/plugin-store-sqlite',
  '@svc/plugin-secrets',
  '@svc/plugin-settings',
  '@svc/plugin-cache',
] as const

/** The plugins with commands. Help reads only their package.json. */
export const WITH_COMMANDS: readonly string[] = [
  '@svc/plugin-chat',
  '@svc/plugin-acp',
  '@svc/plugin-connect',
  '@svc/plugin-console',
  '@svc/plugin-mcp-client',
  '@svc/plugin-auth-bearer',
  '@svc/plugin-workflows',
  '@svc/plugin-teams',
  '@svc/plugin-jobs',
  '@svc/plugin-schedules',
  '@svc/plugin-conversations',
  '@svc/plugin-evaluations',
  '@svc/plugin-webhooks',
  '@svc/plugin-admin-api',
  '@svc/plugin-store-sqlite',
  '@svc/plugin-store-postgres',
  '@svc/plugin-secrets',
]

/** The types of the plugins in `CURATED`, for `defineConfig`. */
export type CuratedModules = [
  typeof import('@svc/plugin-http'),
  typeof import('@svc/plugin-rest'),
  typeof import('@svc/plugin-openai-api'),
  typeof import('@svc/plugin-anthropic-api'),
  typeof import('@svc/plugin-gemini-api'),
  typeof import('@svc/plugin-docs-page'),
  typeof import('@svc/plugin-acp'),
  typeof import('@svc/plugin-mcp-server'),
  typeof import('@svc/plugin-mcp-bridge'),
  typeof import('@svc/plugin-mcp-client'),
  typeof import('@svc/plugin-event-feed'),
  typeof import('@svc/plugin-webhooks'),
  typeof import('@svc/plugin-metrics'),
  typeof import('@svc/plugin-traces'),
  typeof import('@svc/plugin-usage'),
  typeof import('@svc/plugin-rate-limit'),
  typeof import('@svc/plugin-auth-api-key'),
  typeof import('@svc/plugin-auth-bearer'),
  typeof import('@svc/plugin-auth-oidc'),
  typeof import('@svc/plugin-console'),
  typeof import('@svc/plugin-chat'),
  typeof import('@svc/plugin-model-calls'),
  typeof import('@svc/plugin-named-models'),
  typeof import('@svc/plugin-chat-policy'),
  typeof import('@svc/plugin-chat-cache'),
  typeof import('@svc/plugin-models'),
  typeof import('@svc/plugin-conversations'),
  typeof import('@svc/plugin-selection'),
  typeof import('@svc/plugin-modes'),
  typeof import('@svc/plugin-provider-local'),
  typeof import('@svc/plugin-provider-openai'),
  typeof import('@svc/plugin-provider-anthropic'),
  typeof import('@svc/plugin-provider-google'),
  typeof import('@svc/plugin-provider-ai-sdk'),
  typeof import('@svc/plugin-tools-time'),
  typeof import('@svc/plugin-tools-files'),
  typeof import('@svc/plugin-tools-web'),
  typeof import('@svc/plugin-tools-text'),
  typeof import('@svc/plugin-tools-search'),
  typeof import('@svc/plugin-tools-git'),
  typeof import('@svc/plugin-tools-code'),
  typeof import('@svc/plugin-sandbox-quickjs'),
  typeof import('@svc/plugin-tools-shell'),
  typeof import('@svc/plugin-sandbox-process'),
  typeof import('@svc/plugin-isolation'),
  typeof import('@svc/plugin-queue-store'),
  typeof import('@svc/plugin-jobs'),
  typeof import('@svc/plugin-schedules'),
  typeof import('@svc/plugin-workflow-nodes'),
  typeof import('@svc/plugin-workflows'),
  typeof import('@svc/plugin-teams'),
  typeof import('@svc/plugin-recommend'),
  typeof import('@svc/plugin-verticals'),
  typeof import('@svc/plugin-store-sqlite'),
  typeof import('@svc/plugin-store-postgres'),
  typeof import('@svc/plugin-secrets'),
  typeof import('@svc/plugin-settings'),
  typeof import('@svc/plugin-cache'),
  typeof import('@svc/plugin-redis'),
  typeof import('@svc/plugin-counts-redis'),
  typeof import('@svc/plugin-cache-redis'),
]

/** The default configuration: the curated plugins, and a provider that needs no key. */
export const DEFAULTS: ConfigTree = { plugins: [...CURATED], providers: { local: {} } }

/** The store of a configuration that selects no other one. */
export const EMBEDDED_STORE = '@svc/plugin-store-sqlite'

/** The store that `store.url` selects. */
export const POSTGRES_STORE = '@svc/plugin-store-postgres'

/** What takes the place of others when the store is in PostgreSQL. */
const FOR_POSTGRES: Readonly<Record<string, string>> = {
  [EMBEDDED_STORE]: POSTGRES_STORE,
  '@svc/plugin-bus-store': '@svc/plugin-bus-postgres',
  '@svc/plugin-queue-store': '@svc/plugin-queue-pgboss',
}

/** The plugins for each use of Redis in `redis.use`, and whose place they take. */
const FOR_REDIS = {
  counts: { use: '@svc/plugin-counts-redis', insteadOf: [] },
  cache: { use: '@svc/plugin-cache-redis', insteadOf: ['@svc/plugin-cache'] },
  bus: { use: '@svc/plugin-bus-redis', insteadOf: ['@svc/plugin-bus-store', '@svc/plugin-bus-postgres'] },
  queue: { use: '@svc/plugin-queue-bullmq', insteadOf: ['@svc/plugin-queue-store', '@svc/plugin-queue-pgboss'] },
} as const
/** What Redis is used for where `redis.use` does not say it. */
const DEFAULT_USES: readonly string[] = ['counts', 'cache', 'bus']

/** All plugins that a configuration can select without naming them. */
export const SELECTABLE: readonly string[] = [
  ...CURATED,
  ...Object.values(FOR_POSTGRES),
  '@svc/plugin-redis',
  ...Object.values(FOR_REDIS).map(({ use }) => use),
]

/** The setting that selects a plugin which the configuration does not name; undefined for others. */
export function selectorOf(plugin: string): string | undefined {
  if (Object.values(FOR_POSTGRES).includes(plugin)) return 'store.url to postgres://user@host:5432/name'
  if (plugin === FOR_REDIS.queue.use) return 'redis.url to redis://host:6379, and add queue to redis.use'
  const isOfRedis = plugin === '@svc/plugin-redis' || Object.values(FOR_REDIS).some(({ use }) => use === plugin)
  return isOfRedis ? 'redis.url to redis://host:6379' : undefined
}

/** What selects other plugins: the URL of a database, and that of Redis with its uses. */
export interface Selectors {
  readonly storeUrl: unknown
  /** The plugins that the configuration loads without a selection. */
  readonly loaded: readonly string[]
  readonly redisUrl: unknown
  readonly redisUse: unknown
}

/** Whether `store.url` selects the store in PostgreSQL. */
export const isPostgresUrl = (url: unknown): url is string => typeof url === 'string' && /^postgres(ql)?:/i.test(url)

/**
 * The default configuration for these values of the others. Servers with a store in PostgreSQL are one cluster. Undefined if they
 * select nothing.
 */
export function selectedDefaults({ storeUrl, loaded, redisUrl, redisUse }: Selectors): ConfigTree | undefined {
  // the embedded store has no URL: for a wrong one, the store in PostgreSQL explains what it must be
  const isPostgres = isPostgresUrl(storeUrl) || (storeUrl !== undefined && loaded.includes(EMBEDDED_STORE))
  const isRedis = typeof redisUrl === 'string'
  if (!isPostgres && !isRedis) return undefined
  const plugins = isPostgres ? CURATED.map(name => FOR_POSTGRES[name] ?? name) : CURATED
  const wanted: readonly unknown[] = Array.isArray(redisUse) ? redisUse : DEFAULT_USES
  const uses = Object.entries(FOR_REDIS).flatMap(([name, plugin]) => (isRedis && wanted.includes(name) ? [plugin] : []))
  const replaced: readonly string[] = uses.flatMap(({ insteadOf }) => insteadOf)
  return {
    ...DEFAULTS,
    plugins: [
      ...plugins.filter(name => !replaced.includes(name)),
      ...(isRedis ? ['@svc/plugin-redis'] : []),
      ...uses.map(({ use }) => use),
    ],
    ...(isPostgres ? { cluster: { name: 'svc' } } : {}),
  }
}
