import { allows, type Me } from './api.ts'

interface Page {
  readonly to: string
  readonly name: string
  /** The key after `g` that opens it. */
  readonly key: string
  /** Who lacks it does not see the page. */
  readonly scope: string
  /** The path of its icon, in a square of 24. */
  readonly icon: string
}

interface Group<P extends Page> {
  readonly name?: string
  readonly pages: readonly P[]
}

/** The pages as the navigation groups them. */
const GROUPS = [
  {
    pages: [
      { to: '/overview', name: 'Overview', key: 'o', scope: 'read', icon: 'M3 12h4l3-8 4 16 3-8h4' },
      { to: '/playground', name: 'Playground', key: 'p', scope: 'chat', icon: 'M5 4l14 8-14 8z' },
      { to: '/conversations', name: 'Conversations', key: 'c', scope: 'chat', icon: 'M4 5h16v11H9l-5 4z' },
      { to: '/traces', name: 'Traces', key: 't', scope: 'read', icon: 'M4 6h10M8 12h12M6 18h7' },
      { to: '/inbox', name: 'Inbox', key: 'i', scope: 'read', icon: 'M4 13l3-8h10l3 8v6H4zM4 13h5l1 2h4l1-2h5' },
    ],
  },
  {
    name: 'Work',
    pages: [
      {
        to: '/workflows',
        name: 'Workflows',
        key: 'w',
        scope: 'workflows',
        icon: 'M4 4h6v6H4zM14 14h6v6h-6zM7 10v4a3 3 0 003 3h4',
      },
      {
        to: '/runs',
        name: 'Runs',
        key: 'r',
        scope: 'workflows',
        icon: 'M12 3a9 9 0 100 18 9 9 0 000-18zM10 8.500l6 3.500-6 3.500z',
      },
      {
        to: '/teams',
        name: 'Teams',
        key: 'e',
        scope: 'read',
        icon: 'M9 11a3 3 0 100-6 3 3 0 000 6zM3 19a6 6 0 0112 0M16 5.500a3 3 0 010 5.500M21 19a6 6 0 00-4-5.600',
      },
      { to: '/schedules', name: 'Schedules', key: 's', scope: 'read', icon: 'M12 3a9 9 0 100 18 9 9 0 000-18zM12 7v5l3.500 2' },
      { to: '/jobs', name: 'Jobs', key: 'j', scope: 'read', icon: 'M4 8h16v11H4zM9 8V5h6v3M4 13h16' },
      { to: '/dead-letters', name: 'Dead letters', key: 'd', scope: 'workflows', icon: 'M4 6h16v12H4zM4 7l8 6 8-6M9 3h6' },
    ],
  },
  {
    name: 'Connected',
    pages: [
      { to: '/tools', name: 'Tools', key: 'f', scope: 'read', icon: 'M14 7l3 3-9 9H5v-3zM13 4h7v7' },
      { to: '/mcp', name: 'MCP servers', key: 'm', scope: 'read', icon: 'M5 4h14v6H5zM5 14h14v6H5zM8 7h1M8 17h1' },
      {
        to: '/providers',
        name: 'Providers',
        key: 'v',
        scope: 'read',
        icon: 'M7 18a4 4 0 010-8 5 5 0 019.500-1.500A4.500 4.500 0 0117 18z',
      },
      { to: '/plugins', name: 'Plugins', key: 'x', scope: 'read', icon: 'M9 3v5M15 3v5M6 8h12v4a6 6 0 01-12 0zM12 18v3' },
      { to: '/webhooks', name: 'Webhooks', key: 'h', scope: 'admin', icon: 'M4 12h12M12 7l5 5-5 5M20 5v14' },
    ],
  },
  {
    name: 'Server',
    pages: [
      { to: '/usage', name: 'Usage and limits', key: 'u', scope: 'read', icon: 'M4 20V10M10 20V4M16 20v-8M22 20H2' },
      { to: '/logs', name: 'Logs and events', key: 'l', scope: 'read', icon: 'M4 6h16M4 10h10M4 14h16M4 18h8' },
      {
        to: '/tokens',
        name: 'Tokens',
        key: 'k',
        scope: 'read',
        icon: 'M15 4a5 5 0 11-4.500 7.200L4 17.700V20h3v-2h2v-2h2l1.500-1.500',
      },
      {
        to: '/configuration',
        name: 'Configuration',
        key: 'n',
        scope: 'read',
        icon: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
      },
      { to: '/doctor', name: 'Doctor', key: 'b', scope: 'admin', icon: 'M9 4h6v4H9zM9 6H5v15h14V6h-4M9 14l2 2 4-4' },
    ],
  },
] as const satisfies readonly Group<Page>[]

export type PageEntry = (typeof GROUPS)[number]['pages'][number]

const ALL: readonly Group<PageEntry>[] = GROUPS

/** The groups of the pages that a caller may use. */
export const groupsFor = (me: Me): readonly Group<PageEntry>[] =>
  ALL.map(group => ({ ...group, pages: group.pages.filter(({ scope }) => allows(me, scope)) })).filter(
    ({ pages }) => pages.length > 0
  )

const folded = (name: string) =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
const NAMES: ReadonlySet<string> = new Set(ALL.flatMap(({ pages }) => pages.map(({ name }) => folded(name))))

/** The icon of the page at a path of the console. */
export const iconAt = (path: string): string | undefined =>
  ALL.flatMap(({ pages }) => pages).find(({ to }) => path.endsWith(to))?.icon

/** The page at a path of the console that the scopes of the caller do not allow. */
export const closedAt = (path: string, me: Me): PageEntry | undefined =>
  ALL.flatMap(({ pages }) => pages).find(({ to, scope }) => path.endsWith(to) && !allows(me, scope))

/** Whether a page of the console has this name, apart from case and signs. */
export const hasPageName = (name: string): boolean => NAMES.has(folded(name))
