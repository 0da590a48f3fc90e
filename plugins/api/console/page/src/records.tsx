import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { SearchLink } from './address.tsx'
import { allows, messageOf } from './api.ts'
import { type CursorList, useCursorList } from './list.tsx'
import { useMe } from './parts.tsx'
import { Empty, ErrorLog, Failure, LONGEST_MESSAGE, Time } from './states.tsx'
import { visible } from './visible-text.ts'

// What the pages of administrators share: lists that the server sends whole, changes with their problems, steps, secrets.

/** A list that the server sends whole. */
export function useItems<Item>(
  key: QueryKey,
  read: (signal: AbortSignal) => Promise<readonly Item[]>
): CursorList<Item, { readonly items: readonly Item[]; readonly next_cursor: null }> {
  return useCursorList({
    key,
    read: async (_from, signal) => ({ items: await read(signal), next_cursor: null }),
    itemsOf: page => page.items,
  })
}

/** The items of a list that contain the words, in any case. */
export function withWords<Item>(
  list: CursorList<Item>,
  words: string | undefined,
  textOf: (item: Item) => string
): CursorList<Item> {
  if (words === undefined) return list
  const wanted = words.toLowerCase().split(/\s+/)
  return {
    ...list,
    items: list.items.filter(item => {
      const text = textOf(item).toLowerCase()
      return wanted.every(word => text.includes(word))
    }),
  }
}

interface NothingProps {
  readonly isFiltered: boolean
  readonly name: string
  readonly names: string
  /** How to get the first one. */
  readonly children: ReactNode
}

/** Why a list is empty: its filters, or there is nothing yet. */
export const Nothing = ({ isFiltered, name, names, children }: NothingProps) =>
  isFiltered ? (
    <Empty title={`No ${name} matches`}>
      <SearchLink change={{ q: undefined, state: undefined }}>Show all {names}</SearchLink>
    </Empty>
  ) : (
    <Empty title={`No ${names}`}>{children}</Empty>
  )

interface AddingProps {
  readonly label: string
  readonly dialog: (onClose: () => void) => ReactNode
}

/** The button of an administrator that opens the dialog for a new item. */
export function Adding({ label, dialog }: AddingProps) {
  const me = useMe()
  const [isOpen, setOpen] = useState(false)
  if (!allows(me, 'admin')) return null
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && dialog(() => setOpen(false))}
    </>
  )
}

/** Reads queries again: what a change has made old. */
export function useAgain(...keys: readonly QueryKey[]): () => Promise<unknown> {
  const queries = useQueryClient()
  return () => Promise.all(keys.map(queryKey => queries.invalidateQueries({ queryKey })))
}

/** The name without the prefix that all plugins of svc have. */
export const shortName = (plugin: string): string => plugin.replace(/^@svc\/plugin-/, '')

/** Where the code of a plugin runs, after "it runs". */
export const RUNS: Readonly<Record<string, string>> = {
  'in-process': 'in the process of the server, with all its rights',
  process: 'in a process of its own, with its permissions only',
  quickjs: 'in a JavaScript sandbox without access to the machine',
  data: 'not at all: it has only data',
}

interface HeadProps {
  readonly title: string
  /** The title is a name of code, such as that of a tool. */
  readonly isCode?: boolean
  readonly back?: ReactNode
  /** Below the title. */
  readonly facts?: ReactNode
  readonly badge?: ReactNode
  readonly children?: ReactNode
}

/** The title of the selected item, and what can be done with it. */
export function ItemHead({ title, isCode = false, back, facts, badge, children }: HeadProps) {
  return (
    <div className="bar">
      {back}
      <div className="grow">
        <h2 className={isCode ? 'section-title clip mono' : 'section-title clip'}>{title}</h2>
        {facts && <p className="muted small clip">{facts}</p>}
      </div>
      {badge}
      {children}
    </div>
  )
}

interface Change<Input, Result> {
  readonly run: (input: Input) => void
  readonly isRunning: boolean
  readonly error: unknown
  readonly result: Result | undefined
  readonly reset: () => void
}

/** A change of the server. The queries of `keys` are read again after it. */
export function useChange<Input = void, Result = unknown>(
  act: (input: Input) => Promise<Result>,
  { keys = [], onDone }: { readonly keys?: readonly QueryKey[]; readonly onDone?: (result: Result) => void } = {}
): Change<Input, Result> {
  const queries = useQueryClient()
  const change = useMutation({
    mutationFn: act,
    async onSuccess(result) {
      await Promise.all(keys.map(queryKey => queries.invalidateQueries({ queryKey })))
      onDone?.(result)
    },
  })
  return {
    run: change.mutate as (input: Input) => void,
    isRunning: change.isPending,
    error: change.error,
    result: change.data,
    reset: change.reset,
  }
}

/** Why a change failed. */
export const Problem = ({ error }: { readonly error: unknown }) => (error ? <Failure error={error} /> : null)

interface ReadProps {
  readonly query: {
    readonly error: unknown
    readonly data: unknown
    readonly dataUpdatedAt: number
    readonly refetch: () => Promise<unknown>
  }
}

/** Says that what is shown is old: the server has answered before, but not to the last question. */
export function Stale({ query: { error, data, dataUpdatedAt, refetch } }: ReadProps) {
  if (!error || data === undefined) return null
  return (
    <p className="note note-warn note-flat" role="status">
      This is what the server said <Time at={new Date(dataUpdatedAt).toISOString()} />. Since then:{' '}
      {visible(messageOf(error), LONGEST_MESSAGE)} <ErrorLog error={error} />{' '}
      <button type="button" className="link-button" onClick={() => void refetch()}>
        Try again
      </button>
    </p>
  )
}

/** That something could not be read, or how old it is because it could not be read again. */
export const ReadProblem = ({ query }: ReadProps) =>
  query.error && query.data === undefined ? (
    <Failure error={query.error} onRetry={() => void query.refetch()} />
  ) : (
    <Stale query={query} />
  )

/** A secret that the server sends only once. */
export function Secret({ name, value }: { readonly name: string; readonly value: string }) {
  const [state, setState] = useState<string>()
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value)
      setState('Copied')
    } catch (error) {
      setState(`Not copied: ${messageOf(error)}`)
    }
  }
  return (
    <div className="stack">
      <p className="note">Copy it now. The server does not show it again.</p>
      <div className="secret">
        <code tabIndex={0} role="textbox" aria-readonly="true" aria-label={name}>
          {value}
        </code>
        <button type="button" className="button" onClick={() => void copy()}>
          Copy
        </button>
      </div>
      <p className="muted small" role="status">
        {state}
      </p>
    </div>
  )
}

/** The end of something that happens step by step. */
export function Steps({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <ol className="step-list" aria-label={label} aria-live="polite">
      {children}
    </ol>
  )
}

interface StepProps {
  readonly state: 'running' | 'ok' | 'warn' | 'bad'
  readonly name: ReactNode
  readonly about?: ReactNode
  readonly end?: ReactNode
}

const STEP_WORDS = { running: 'running', ok: 'done', warn: 'with a warning', bad: 'failed' } as const

export function Step({ state, name, about, end }: StepProps) {
  return (
    <li className={`step step-${state}`}>
      <span className="step-mark" role="img" aria-label={STEP_WORDS[state]} />
      <span className="grow">
        <span className="step-name">{name}</span>
        {about && <span className="step-about">{about}</span>}
      </span>
      {end && <span className="muted small number">{end}</span>}
    </li>
  )
}
