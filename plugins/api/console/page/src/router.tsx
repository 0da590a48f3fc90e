import type { QueryClient } from '@tanstack/react-query'
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Gate } from './gate.tsx'
import { Loading, NotFound, PageError } from './states.tsx'

interface Context {
  readonly queries: QueryClient
}

const root = createRootRouteWithContext<Context>()({ component: Gate, notFoundComponent: NotFound })

const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    // oxlint-disable-next-line typescript/only-throw-error -- the router takes redirects that way
    throw redirect({ to: '/overview', replace: true })
  },
})

const textOf = (value: unknown): string | undefined => {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  return typeof text === 'string' && text !== '' ? text.slice(0, 500) : undefined
}

/** The texts of a search that a page knows. */
function textsOf<K extends string>(
  search: Readonly<Record<string, unknown>>,
  names: readonly K[]
): { readonly [name in K]?: string } {
  const found = names.flatMap(name => {
    const text = textOf(search[name])
    return text === undefined ? [] : [[name, text] as const]
  })
  return Object.fromEntries(found) as { readonly [name in K]?: string }
}

/** The longest text of the reader that is kept in the address. */
export const LONGEST_IN_ADDRESS = 2_000

/** Texts that are of no use if they are cut: longer ones are left out. */
function wholeTextsOf<K extends string>(
  search: Readonly<Record<string, unknown>>,
  names: readonly K[]
): { readonly [name in K]?: string } {
  const found = names.flatMap(name => {
    // the router reads a text that is JSON as its value
    const value = search[name] ?? ''
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return text === '' || text.length > LONGEST_IN_ADDRESS ? [] : [[name, text] as const]
  })
  return Object.fromEntries(found) as { readonly [name in K]?: string }
}

/** The member of the address that has the order of a table of a plugin's view: the name of its page, and its place in the view. */
export const viewOrderOf = (page: string, at: number): string => `sort.${page}.${at}`
const VIEW_ORDER = /^sort\.[\w-]{1,64}\.\d{1,2}$/
/** More tables than a reader has sorted. */
const MOST_ORDERS = 20

/** The orders of the tables in views of plugins. */
const viewOrdersIn = (search: Readonly<Record<string, unknown>>): object =>
  textsOf(
    search,
    Object.keys(search)
      .filter(name => VIEW_ORDER.test(name))
      .slice(0, MOST_ORDERS)
  )

/** The search without some of its members. */
export function without<S extends object, K extends keyof S>(search: S, ...names: readonly K[]): Omit<S, K> {
  return Object.fromEntries(Object.entries(search).filter(([name]) => !names.includes(name as K))) as Omit<S, K>
}

export const overview = createRoute({
  getParentRoute: () => root,
  path: 'overview',
  validateSearch: search => ({ ...textsOf(search, ['category']), ...viewOrdersIn(search) }),
  component: lazyRouteComponent(() => import('./pages/overview.tsx'), 'Overview'),
})

export const playground = createRoute({
  getParentRoute: () => root,
  path: 'playground',
  validateSearch: search => ({
    ...textsOf(search, ['profile', 'provider', 'model', 'mode', 'conversation', 'compare', 'provider2', 'model2']),
    ...wholeTextsOf(search, ['system', 'schema']),
  }),
  component: lazyRouteComponent(() => import('./pages/playground.tsx'), 'Playground'),
})

export const conversations = createRoute({
  getParentRoute: () => root,
  path: 'conversations',
  validateSearch: search => ({ ...textsOf(search, ['q', 'label', 'id', 'tab']), ...viewOrdersIn(search) }),
  component: lazyRouteComponent(() => import('./pages/conversations.tsx'), 'Conversations'),
})

export const traces = createRoute({
  getParentRoute: () => root,
  path: 'traces',
  validateSearch: search => textsOf(search, ['q', 'status', 'reads', 'conversation', 'request', 'id', 'span', 'find']),
  component: lazyRouteComponent(() => import('./pages/traces.tsx'), 'Traces'),
})

export const inbox = createRoute({
  getParentRoute: () => root,
  path: 'inbox',
  validateSearch: search => textsOf(search, ['q', 'kind', 'id']),
  component: lazyRouteComponent(() => import('./pages/inbox.tsx'), 'Inbox'),
})

export const workflows = createRoute({
  getParentRoute: () => root,
  path: 'workflows',
  validateSearch: search => textsOf(search, ['q', 'state', 'id', 'tab', 'draft', 'list', 'sort']),
  component: lazyRouteComponent(() => import('./pages/workflows.tsx'), 'Workflows'),
})

export const runs = createRoute({
  getParentRoute: () => root,
  path: 'runs',
  validateSearch: search => ({
    ...textsOf(search, ['workflow', 'failure_code', 'owner', 'status', 'paused', 'id', 'tab', 'step', 'state', 'order', 'sort']),
    ...viewOrdersIn(search),
  }),
  component: lazyRouteComponent(() => import('./pages/runs.tsx'), 'Runs'),
})

export const teams = createRoute({
  getParentRoute: () => root,
  path: 'teams',
  validateSearch: search => textsOf(search, ['team', 'status', 'tab', 'id', 'member', 'sort']),
  component: lazyRouteComponent(() => import('./pages/teams.tsx'), 'Teams'),
})

export const schedules = createRoute({
  getParentRoute: () => root,
  path: 'schedules',
  validateSearch: search => textsOf(search, ['q', 'state', 'id']),
  component: lazyRouteComponent(() => import('./pages/schedules.tsx'), 'Schedules'),
})

export const jobs = createRoute({
  getParentRoute: () => root,
  path: 'jobs',
  validateSearch: search => textsOf(search, ['kind', 'state', 'group', 'id']),
  component: lazyRouteComponent(() => import('./pages/jobs.tsx'), 'Jobs'),
})

export const deadLetters = createRoute({
  getParentRoute: () => root,
  path: 'dead-letters',
  validateSearch: search => textsOf(search, ['tab', 'workflow', 'failure_code', 'kind', 'id']),
  component: lazyRouteComponent(() => import('./pages/dead-letters.tsx'), 'DeadLetters'),
})

const work = [inbox, workflows, runs, teams, schedules, jobs, deadLetters] as const

const page = <P extends string, K extends string>(
  path: P,
  names: readonly K[],
  load: () => Promise<Readonly<Record<string, unknown>>>,
  component: string
) =>
  createRoute({
    getParentRoute: () => root,
    path,
    validateSearch: search => textsOf(search, names),
    component: lazyRouteComponent(load as () => Promise<Record<string, () => ReactNode>>, component),
  })

// the pages of administrators
export const tools = page('tools', ['q', 'category', 'id', 'tab'], () => import('./pages/tools.tsx'), 'Tools')
export const mcp = page('mcp', ['q', 'state', 'id', 'tab', 'request', 'line'], () => import('./pages/mcp.tsx'), 'McpServers')
export const plugins = page('plugins', ['q', 'filter', 'id', 'tab', 'change'], () => import('./pages/plugins.tsx'), 'Plugins')
export const providers = page('providers', ['q', 'id'], () => import('./pages/providers.tsx'), 'Providers')
export const tokens = page('tokens', ['q', 'sort'], () => import('./pages/tokens.tsx'), 'Tokens')
export const usage = page('usage', ['range', 'metric', 'by', 'client', 'sort'], () => import('./pages/usage.tsx'), 'Usage')
export const configuration = page(
  'configuration',
  ['q', 'source', 'section', 'id'],
  () => import('./pages/configuration.tsx'),
  'Configuration'
)
export const logs = createRoute({
  getParentRoute: () => root,
  path: 'logs',
  validateSearch: search => ({
    ...textsOf(search, ['q', 'level', 'request', 'tab', 'line', 'event']),
    // a position in the events of all workers
    ...wholeTextsOf(search, ['after']),
  }),
  component: lazyRouteComponent(() => import('./pages/logs.tsx'), 'Logs'),
})
export const webhooks = page('webhooks', ['q', 'id', 'tab', 'state'], () => import('./pages/webhooks.tsx'), 'Webhooks')
export const doctor = page('doctor', [], () => import('./pages/doctor.tsx'), 'Doctor')

/** A page of a plugin. */
export const pluginPage = createRoute({
  getParentRoute: () => root,
  path: 'pages/$name',
  validateSearch: viewOrdersIn,
  component: lazyRouteComponent(() => import('./pages/plugin-page.tsx'), 'PluginPage'),
})

const manage = [tools, mcp, plugins, providers, tokens, usage, configuration, logs, webhooks, doctor] as const

export function createPageRouter(queries: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([start, overview, playground, conversations, traces, ...work, ...manage, pluginPage]),
    basepath: '/console',
    context: { queries },
    defaultPreload: 'intent',
    defaultPendingMs: 150,
    defaultPendingComponent: Loading,
    defaultErrorComponent: PageError,
    scrollRestoration: false,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createPageRouter>
  }
}
