import { Link, type LinkProps, useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useCallback } from 'react'

/** Members of the address to set; `undefined` removes one. */
export type Change = Readonly<Record<string, string | undefined>>

/** A search with changes. What a page does not know, its route leaves out. */
function changed(search: object, change: Change): Record<string, string> {
  const kept = Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined && value !== '')
  return Object.fromEntries(kept) as Record<string, string>
}

/** The search of the open page, and how to change it. A change replaces the entry of the history, unless it leads to another view. */
export function useAddress(): readonly [
  Readonly<Record<string, string | undefined>>,
  (change: Change, isView?: boolean) => void,
] {
  const search = useSearch({ strict: false })
  const navigate = useNavigate()
  const change = useCallback(
    (next: Change, isView = false) =>
      void navigate({ to: '.', search: (before: object) => changed(before, next), replace: !isView }),
    [navigate]
  )
  return [search as Readonly<Record<string, string | undefined>>, change]
}

interface SearchLinkProps {
  readonly change: Change
  readonly className?: string
  readonly children: ReactNode
  readonly isCurrent?: boolean
  /** A filter replaces the entry of the history; a selection adds one. */
  readonly replace?: boolean
  readonly id?: string
  readonly title?: string
}

/** A link to the open page with changes of its search. */
export function SearchLink({ change, isCurrent = false, children, ...rest }: SearchLinkProps) {
  return (
    <Link
      to="."
      search={((before: object) => changed(before, change)) as LinkProps['search']}
      data-current={isCurrent || undefined}
      preload={false}
      {...rest}
    >
      {children}
    </Link>
  )
}

interface ChipsProps {
  readonly label: string
  /** The member of the search. */
  readonly name: string
  /** `undefined`: without the filter. */
  readonly values: readonly (readonly [value: string | undefined, text: string])[]
}

/** One filter of a list, as chips. */
export function Chips({ label, name, values }: ChipsProps) {
  const [search] = useAddress()
  return (
    <nav className="chips" aria-label={label}>
      {values.map(([value, text]) => (
        <SearchLink key={text} change={{ [name]: value }} className="chip" isCurrent={search[name] === value} replace>
          {text}
        </SearchLink>
      ))}
    </nav>
  )
}

interface TabsProps extends Omit<ChipsProps, 'name'> {
  readonly name?: string
}

/** The views of one thing. The first is shown without a member of the search. */
export function Tabs({ label, name = 'tab', values }: TabsProps) {
  const [search] = useAddress()
  return (
    <nav className="tabs" aria-label={label}>
      {values.map(([value, text]) => (
        <SearchLink key={text} change={{ [name]: value }} className="tab" isCurrent={search[name] === value} replace>
          {text}
        </SearchLink>
      ))}
    </nav>
  )
}
