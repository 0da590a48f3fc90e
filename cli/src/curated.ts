import type { ConfigTree } from '@svc/core'

/** The plugins that `svc` brings with it. A configuration adds to them by name, and takes one out with `{ use, enabled: false }`. */
const CURATED = [
  '@svc/plugin-http',
  '@svc/plugin-rest',
  '@svc/plugin-docs-page',
  '@svc/plugin-metrics',
  '@svc/plugin-rate-limit',
  '@svc/plugin-auth-api-key',
  '@svc/plugin-auth-bearer',
  '@svc/plugin-auth-oidc',
  '@svc/plugin-chat',
  '@svc/plugin-conversations',
  '@svc/plugin-selection',
  '@svc/plugin-modes',
  '@svc/plugin-provider-local',
  '@svc/plugin-tools-time',
  '@svc/plugin-tools-files',
  '@svc/plugin-store-sqlite',
] as const

/** The types of the plugins in `CURATED`, for `defineConfig`. */
export type CuratedModules = [
  typeof import('@svc/plugin-http'),
  typeof import('@svc/plugin-rest'),
  typeof import('@svc/plugin-docs-page'),
  typeof import('@svc/plugin-metrics'),
  typeof import('@svc/plugin-rate-limit'),
  typeof import('@svc/plugin-auth-api-key'),
  typeof import('@svc/plugin-auth-bearer'),
  typeof import('@svc/plugin-auth-oidc'),
  typeof import('@svc/plugin-chat'),
  typeof import('@svc/plugin-conversations'),
  typeof import('@svc/plugin-selection'),
  typeof import('@svc/plugin-modes'),
  typeof import('@svc/plugin-provider-local'),
  typeof import('@svc/plugin-tools-time'),
  typeof import('@svc/plugin-tools-files'),
  typeof import('@svc/plugin-store-sqlite'),
]

/** The lightest layer of configuration: the curated plugins, and a provider that needs no key. */
export const DEFAULTS: ConfigTree = { plugins: [...CURATED], providers: { local: {} } }
