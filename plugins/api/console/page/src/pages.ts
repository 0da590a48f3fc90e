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
export const GROUPS = [
  {
    pages: [
      { to: '/overview', name: 'Overview', key: 'o', scope: 'read', icon: 'M3 12h4l3-8 4 16 3-8h4' },
      { to: '/playground', name: 'Playground', key: 'p', scope: 'chat', icon: 'M5 4l14 8-14 8z' },
      { to: '/conversations', name: 'Conversations', key: 'c', scope: 'chat', icon: 'M4 5h16v11H9l-5 4z' },
      { to: '/traces', name: 'Traces', key: 't', scope: 'read', icon: 'M4 6h10M8 12h12M6 18h7' },
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
