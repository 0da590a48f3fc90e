import { type QueryKey, useInfiniteQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { type Change, SearchLink, useAddress } from './address.tsx'
import { LIST_ID } from './fold.tsx'
import { useNarrow } from './media.ts'
import { Failure, Loading, Time, Title } from './states.tsx'

/** The part of a list that was read, and how to read on. */
export interface CursorList<Item, Page = unknown> {
  readonly items: readonly Item[]
  readonly pages: readonly Page[]
  readonly isPending: boolean
  readonly isFetching: boolean
  readonly hasMore: boolean
  readonly isReadingMore: boolean
  readonly error: unknown
  /** Milliseconds since 1970 at which it was last read. */
  readonly readAt: number
  readonly readMore: () => void
  readonly readAgain: () => void
}

interface CursorQuery<Item, Page> {
  readonly key: QueryKey
  /** Reads one page. `from` has the cursor, except for the first page. */
  readonly read: (from: { readonly cursor?: string }, signal: AbortSignal) => Promise<Page>
  readonly itemsOf: (page: Page) => readonly Item[]
}

/** A list of the API that is read page by page. A page without entries that match is no end: the next one is read. */
export function useCursorList<Item, Page extends { readonly next_cursor?: string | null }>({
  key,
  read,
  itemsOf,
}: CursorQuery<Item, Page>): CursorList<Item, Page> {
  const query = useInfiniteQuery({
    queryKey: key,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) => read(cursor === undefined ? {} : { cursor }, signal),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
  const of = useRef(itemsOf)
  of.current = itemsOf
  const pages = useMemo(() => query.data?.pages ?? [], [query.data])
  const items = useMemo(() => pages.flatMap(page => of.current(page)), [pages])
  const { hasNextPage, isFetching, isError, fetchNextPage, refetch } = query
  const isShort = items.length === 0 && hasNextPage && !isFetching && !isError
  useEffect(() => {
    if (isShort) void fetchNextPage()
  }, [isShort, fetchNextPage])
  return {
    items,
    pages,
    isPending: query.isPending || (items.length === 0 && hasNextPage && !isError),
    isFetching,
    hasMore: hasNextPage,
    isReadingMore: query.isFetchingNextPage,
    error: query.error,
    readAt: query.dataUpdatedAt,
    readMore: () => void fetchNextPage(),
    readAgain: () => void refetch(),
  }
}

/** Reads the rest of a list, page by page, while the reader reads. */
export function useWhole({ hasMore, isFetching, error, readMore }: CursorList<unknown>): void {
  const read = useRef(readMore)
  read.current = readMore
  const isNext = hasMore && !isFetching && !error
  useEffect(() => {
    if (isNext) read.current()
  }, [isNext])
}

/** The filters of a request: those that are set. */
export const filtersOf = <S extends object, K extends keyof S>(search: S, ...names: readonly K[]) =>
  Object.fromEntries(names.flatMap(name => (search[name] === undefined ? [] : [[name, search[name]]]))) as {
    [N in K]?: Exclude<S[N], undefined>
  }

interface ListPageProps<Item> {
  readonly title: string
  /** Beside the title. */
  readonly actions?: ReactNode
  /** Below the title. */
  readonly filters?: ReactNode
  readonly list: CursorList<Item>
  readonly keyOf: (item: Item) => string
  readonly entry: (item: Item) => ReactNode
  /** The members of the search that select an item. */
  readonly select: (item: Item) => Change
  readonly isSelected: (item: Item) => boolean
  /** Shown when the list has no items. */
  readonly empty: ReactNode
  /** The selected item. */
  readonly detail: ReactNode
  /** Whether an item is selected: a narrow window shows the list or the item. */
  readonly hasSelection: boolean
  /** The selected item is as wide as its place: a drawing, a waterfall. Without it, it is a column in the middle. */
  readonly isWide?: boolean
  /** The selected item takes the place of the list: {@link useFold}. */
  readonly isFolded?: boolean
}

/** A list with its filters, and the selected item beside it. Filters and selection are in the address. */
export function ListPage<Item>({
  title,
  actions,
  filters,
  detail,
  hasSelection,
  isFolded = false,
  isWide = false,
  ...rest
}: ListPageProps<Item>) {
  const isEmpty = rest.list.items.length === 0
  // where there is place for both, an empty list says so where the selected item would be
  const isBeside = !useNarrow() && !hasSelection
  return (
    <div className={`halves ${hasSelection ? 'halves-read' : 'halves-list'}${isFolded ? ' halves-folded' : ''}`}>
      <div className="list-pane" id={LIST_ID}>
        <ListHead title={title} actions={actions} filters={filters} />
        <ListStates list={rest.list} empty={!isBeside && rest.empty} />
        {!isEmpty && <List name={title} {...rest} />}
      </div>
      <div className={isWide ? 'reader' : 'reader column'}>
        {hasSelection && (
          // a narrow window does not show the list, which can have failed
          <div className="only-narrow">
            <ListProblem list={rest.list} />
          </div>
        )}
        {isEmpty && !hasSelection ? isBeside && !rest.list.isPending && !rest.list.error && rest.empty : detail}
      </div>
    </div>
  )
}

export function ListHead({ title, actions, filters }: Pick<ListPageProps<unknown>, 'title' | 'actions' | 'filters'>) {
  return (
    <div className="list-head">
      <div className="row spread">
        <Title name={title}>{title}</Title>
        {actions && <div className="row">{actions}</div>}
      </div>
      {filters}
    </div>
  )
}

/** Of a list: that it is read, that it failed, that it is old, that it is empty. */
export function ListStates({ list, empty }: { readonly list: CursorList<unknown>; readonly empty: ReactNode }) {
  if (list.isPending && !list.error) return <Loading rows={8} />
  return (
    <>
      <ListProblem list={list} />
      {!list.error && list.items.length === 0 && empty}
    </>
  )
}

/** That a list could not be read, and how old it is. */
export function ListProblem({ list }: { readonly list: CursorList<unknown> }) {
  if (!list.error) return null
  return (
    <>
      <Failure error={list.error} onRetry={list.readAgain} />
      {list.items.length > 0 && (
        <p className="note">
          This is what the server said <Time at={new Date(list.readAt).toISOString()} />.
        </p>
      )}
    </>
  )
}

type ListProps<Item> = Pick<ListPageProps<Item>, 'list' | 'keyOf' | 'entry' | 'select' | 'isSelected'> & { readonly name: string }

function List<Item>({ name, list, keyOf, entry, select, isSelected }: ListProps<Item>) {
  return (
    <ul className="list" aria-label={name} onKeyDown={moveFocus}>
      {list.items.map(item => (
        <li key={keyOf(item)} className="list-row">
          <SearchLink change={select(item)} className="list-item" isCurrent={isSelected(item)}>
            {entry(item)}
          </SearchLink>
        </li>
      ))}
      {list.hasMore && list.items.length > 0 && (
        <li>
          <More list={list} />
        </li>
      )}
    </ul>
  )
}

export const More = ({ list }: { readonly list: CursorList<unknown> }) => (
  <button type="button" className="button button-quiet" disabled={list.isReadingMore} onClick={list.readMore}>
    {list.isReadingMore ? 'Loading …' : 'Show more'}
  </button>
)

export const Refresh = ({ list }: { readonly list: Pick<CursorList<unknown>, 'isFetching' | 'readAgain'> }) => (
  <button type="button" className="button button-quiet" onClick={list.readAgain} disabled={list.isFetching}>
    Refresh
  </button>
)

/** Leads from the selected item back to the list, where the window has no place for both. */
export const Back = ({
  change = { id: undefined },
  isAlways = false,
}: {
  readonly change?: Change
  readonly isAlways?: boolean
}) => (
  <SearchLink change={change} className={isAlways ? 'button button-quiet back' : 'button button-quiet back only-narrow'}>
    ← All
  </SearchLink>
)

const SEARCH_MS = 250

/** A text in a member of the address, which follows the typing after a pause. */
function useTyped(name: string): readonly [string, (text: string) => void] {
  const [search, change] = useAddress()
  const value = search[name] ?? ''
  const [text, setText] = useState(value)
  const sent = useRef(value)
  useEffect(() => {
    // the address was changed elsewhere: by a link, or by going back
    if (value !== sent.current) setText(value)
    sent.current = value
  }, [value])
  useEffect(() => {
    const next = text.trim()
    if (next === sent.current) return
    const timer = setTimeout(() => {
      sent.current = next
      change({ [name]: next })
    }, SEARCH_MS)
    return () => clearTimeout(timer)
  }, [text, name, change])
  return [text, setText]
}

interface SearchProps {
  readonly label: string
  /** The member of the address. */
  readonly name?: string
}

/** The search of a list. `/` leads to it. */
export function Search({ label, name = 'q' }: SearchProps) {
  const [text, setText] = useTyped(name)
  return (
    <label className="search">
      <span className="visually-hidden">{label}</span>
      <input
        className="input"
        type="search"
        data-search
        placeholder="Search"
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  )
}

/** A further filter of a list: exactly this text. */
export function TextFilter({ label, name }: Required<SearchProps>) {
  const [text, setText] = useTyped(name)
  return (
    <label>
      <span className="visually-hidden">{label}</span>
      <input
        className="input filter"
        placeholder={label}
        value={text}
        spellCheck={false}
        onChange={event => setText(event.target.value)}
      />
    </label>
  )
}

/** Arrow keys, Home and End move through a list of links. */
export function moveFocus(event: KeyboardEvent<HTMLElement>) {
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('a, button')]
  const at = links.indexOf(document.activeElement as HTMLElement)
  const targets: Readonly<Record<string, number>> = {
    ArrowDown: at + 1,
    j: at + 1,
    ArrowUp: at - 1,
    k: at - 1,
    Home: 0,
    End: links.length - 1,
  }
  const target = links[targets[event.key] ?? -1]
  if (!target) return
  event.preventDefault()
  target.focus()
}
