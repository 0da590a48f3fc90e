import type { Page } from 'playwright-core'

/** How a page gets into a state, and what then is to be seen. */
export interface PageState {
  /** Below `/console/`. */
  readonly path: string
  /** If it is not that of the page: a selected item takes the place of some pages. */
  readonly title?: string
  /** What the reader does there. */
  readonly act?: (page: Page) => Promise<unknown>
  /** Selects what the page shows in this state. */
  readonly shows: string
}

/** The navigation groups the pages in this way, too. Those of a group are checked in one file, `accessible-<group>.spec.ts`. */
export const PAGE_GROUPS = ['operate', 'work', 'connected'] as const
export type PageGroup = (typeof PAGE_GROUPS)[number]

export interface PageStates {
  readonly group: PageGroup
  readonly title: string
  readonly empty: PageState
  /** The page with content, and its tabs and selections. */
  readonly full: readonly [PageState, ...PageState[]]
  /** Each request fails. */
  readonly error: PageState
}

const alert = '[role="alert"] >> text=INTERNAL_ERROR'

const say = async (page: Page) => {
  await page.getByLabel('Message', { exact: true }).fill('Hello')
  await page.keyboard.press('Enter')
}
const examine = (page: Page) => page.getByRole('button', { name: 'Examine the server' }).click()
const first = (selector: string) => (page: Page) => page.locator(selector).first().click()

/** What the pages show, by the ids that {@link fillServer} returns. The keys are the routes of the router: a test compares them. */
export const pageStates = (ids: Readonly<Record<string, string>>): Readonly<Record<string, PageStates>> => ({
  '/overview': {
    group: 'operate',
    title: 'Overview',
    empty: { path: 'overview', shows: '.tile-value' },
    full: [{ path: 'overview', shows: '.tile-value' }],
    error: { path: 'overview', shows: alert },
  },
  '/playground': {
    group: 'operate',
    title: 'Playground',
    empty: { path: 'playground', shows: '.suggestion' },
    full: [
      { path: 'playground', act: say, shows: 'text=/tokens in/' },
      { path: 'playground?compare=on', shows: 'text=Your message goes to both models.' },
      { path: `playground?conversation=${ids.conversation}`, shows: '.message-assistant' },
    ],
    error: { path: 'playground', act: say, shows: alert },
  },
  '/conversations': {
    group: 'operate',
    title: 'Conversations',
    empty: { path: 'conversations', shows: 'text=No conversations yet' },
    full: [
      { path: 'conversations', shows: '.list-item' },
      { path: `conversations?id=${ids.conversation}`, shows: '.message-assistant' },
    ],
    error: { path: 'conversations', shows: alert },
  },
  '/traces': {
    group: 'operate',
    title: 'Traces',
    empty: { path: 'traces', shows: 'text=No traces' },
    full: [
      { path: 'traces?q=chat', shows: '.list-item' },
      { path: `traces?id=${ids.trace}`, act: first('.span'), shows: '.span-detail' },
    ],
    error: { path: 'traces', shows: alert },
  },
  '/inbox': {
    group: 'operate',
    title: 'Inbox',
    empty: { path: 'inbox', shows: 'text=Nothing waits for you' },
    full: [
      { path: 'inbox', shows: '.list-item' },
      { path: 'inbox', act: first('.list-item'), shows: '.ask' },
    ],
    error: { path: 'inbox', shows: alert },
  },
  '/workflows': {
    group: 'work',
    title: 'Workflows',
    empty: { path: 'workflows?q=nothing-is-called-this', shows: 'text=No workflow matches' },
    full: [
      { path: 'workflows', shows: '.list-item' },
      { path: 'workflows?id=ask', shows: '.node' },
    ],
    error: { path: 'workflows', shows: alert },
  },
  '/runs': {
    group: 'work',
    title: 'Runs',
    empty: { path: 'runs', shows: 'text=No runs yet' },
    full: [
      { path: 'runs', shows: '.table-link' },
      { path: `runs?id=${ids.run}&step=broken`, title: 'steps', shows: '[aria-label="The selected step"] >> text="Input"' },
    ],
    error: { path: 'runs', shows: alert },
  },
  '/teams': {
    group: 'work',
    title: 'Teams',
    empty: { path: 'teams', shows: 'text=No team has run yet' },
    full: [
      { path: 'teams', shows: '.table-link' },
      { path: 'teams?tab=teams', shows: '.table-link' },
      { path: 'teams?tab=teams&id=pair', title: 'pair', shows: 'text=Critic' },
      { path: `teams?id=${ids.team}`, title: 'pair', shows: '.member' },
    ],
    error: { path: 'teams', shows: alert },
  },
  '/schedules': {
    group: 'work',
    title: 'Schedules',
    empty: { path: 'schedules', shows: 'text=No schedules' },
    full: [
      { path: 'schedules', shows: '.list-item' },
      { path: 'schedules?id=nightly', shows: 'text=Last ticks' },
    ],
    error: { path: 'schedules', shows: alert },
  },
  '/jobs': {
    group: 'work',
    title: 'Jobs',
    empty: { path: 'jobs?state=failed', shows: 'text=No job matches' },
    full: [
      { path: 'jobs', shows: '.table-link' },
      { path: `jobs?id=${ids.job}`, title: 'manual.echo', shows: '[aria-label="Input"]' },
    ],
    error: { path: 'jobs', shows: alert },
  },
  '/dead-letters': {
    group: 'work',
    title: 'Dead letters',
    empty: { path: 'dead-letters', shows: 'text=No run has failed for good' },
    full: [
      { path: 'dead-letters', shows: '.table-link' },
      { path: 'dead-letters', act: first('.table-link'), shows: 'h2:text-is("broken")' },
    ],
    error: { path: 'dead-letters', shows: alert },
  },
  '/tools': {
    group: 'connected',
    title: 'Tools',
    empty: { path: 'tools?q=nothing-is-called-this', shows: 'text=Nothing found' },
    full: [
      { path: 'tools', shows: '.list-item' },
      { path: 'tools?id=order', shows: '.form-field' },
      { path: 'tools?id=order&tab=schema', shows: '.json' },
      { path: 'tools?id=order&tab=about', shows: 'text=Modes of turns' },
    ],
    error: { path: 'tools?id=order&tab=about', shows: alert },
  },
  '/mcp': {
    group: 'connected',
    title: 'MCP servers',
    empty: { path: 'mcp', shows: 'text=No MCP servers' },
    full: [
      { path: 'mcp', shows: '.list-item' },
      { path: 'mcp?id=fixed', shows: 'h2:text-is("fixed")' },
      { path: 'mcp?id=fixed&tab=tools', shows: 'h2:text-is("fixed")' },
      { path: 'mcp?id=fixed&tab=changes', shows: 'del' },
      { path: 'mcp?id=fixed&tab=test', shows: 'text=Test the connection' },
      { path: 'mcp?id=fixed&tab=log', shows: 'text=/^live/' },
    ],
    error: { path: 'mcp?id=fixed', shows: alert },
  },
  '/plugins': {
    group: 'connected',
    title: 'Plugins',
    empty: { path: 'plugins?q=nothing-is-called-this', shows: 'text=Nothing found' },
    full: [
      { path: 'plugins?q=api', shows: '.list-item' },
      { path: 'plugins?id=@svc%2Fplugin-http', shows: 'text=in the process of the server' },
      { path: 'plugins?id=@svc%2Fplugin-http&tab=adds', shows: 'text=Provides' },
      { path: 'plugins?change=install', shows: 'text=Name of the package' },
    ],
    error: { path: 'plugins', shows: alert },
  },
  '/providers': {
    group: 'connected',
    title: 'Providers',
    empty: { path: 'providers?q=nothing-is-called-this', shows: 'text=Nothing found' },
    full: [
      { path: 'providers', shows: '.list-item' },
      { path: 'providers?id=local', shows: 'text=local-small' },
    ],
    error: { path: 'providers?id=local', shows: alert },
  },
  '/tokens': {
    group: 'operate',
    title: 'Tokens',
    empty: { path: 'tokens', shows: 'text=No tokens' },
    full: [{ path: 'tokens', shows: 'text=someone' }],
    error: { path: 'tokens', shows: alert },
  },
  '/usage': {
    group: 'operate',
    title: 'Usage and limits',
    empty: { path: 'usage?metric=errors&range=1h', shows: 'text=Nothing in this time' },
    full: [
      { path: 'usage?by=model', shows: '.chart canvas' },
      { path: 'usage?metric=latency&range=1h&by=route', shows: '.chart canvas' },
    ],
    error: { path: 'usage', shows: alert },
  },
  '/configuration': {
    group: 'operate',
    title: 'Configuration',
    empty: { path: 'configuration?q=nothing-is-called-this', shows: 'text=Nothing found' },
    full: [
      { path: 'configuration', shows: '.list-item' },
      { path: 'configuration?id=server.body_limit', shows: 'h2:text-is("server.body_limit")' },
    ],
    error: { path: 'configuration?id=server.body_limit', shows: alert },
  },
  '/logs': {
    group: 'operate',
    title: 'Logs and events',
    empty: { path: 'logs?request=none', shows: 'text=No line yet' },
    full: [
      { path: 'logs', shows: '.log-line' },
      { path: 'logs?tab=events', shows: 'main .table-row, main .empty' },
    ],
    error: { path: 'logs', shows: alert },
  },
  '/webhooks': {
    group: 'connected',
    title: 'Webhooks',
    empty: { path: 'webhooks', shows: 'text=No webhooks' },
    full: [
      { path: 'webhooks', shows: '.list-item' },
      { path: `webhooks?id=${ids.webhook}`, shows: 'text=Send a test' },
    ],
    error: { path: 'webhooks', shows: alert },
  },
  '/doctor': {
    group: 'operate',
    title: 'Doctor',
    empty: { path: 'doctor', shows: 'text=Not examined yet' },
    full: [{ path: 'doctor', act: examine, shows: '[aria-label="Findings"] >> text=/^node$/' }],
    error: { path: 'doctor', act: examine, shows: alert },
  },
  '/pages/$name': {
    group: 'connected',
    title: 'Things',
    empty: { path: 'pages/nothing', shows: 'text=Nothing here yet' },
    full: [{ path: 'pages/things', shows: '[role="cell"]' }],
    error: { path: 'pages/things', shows: alert },
  },
})
