import { useState } from 'react'
import { type CursorList, useCursorList } from './list.tsx'
import { Action, Card } from './parts.tsx'
import { viewOrderOf } from './router.tsx'
import { Empty, Failure } from './states.tsx'
import { type Column, ListTable } from './table.tsx'
import { textOf } from './plugin-text.ts'
import {
  answerOf,
  dataOf,
  itemsOf,
  MOST_ROWS,
  type Part,
  type PartProps,
  requestOf,
  valueAt,
  type ViewSource,
} from './view-data.ts'
import { keyOf, Value } from './view-parts.tsx'

interface Row {
  /** Its place in the list. */
  readonly at: number
  readonly data: unknown
}

interface RowsPage {
  readonly items: readonly unknown[]
  readonly count: number
  readonly next_cursor: string | null
}

const LONGEST_CURSOR = 2_000

/** Reads a list part by part. An empty part ends it, so that no plugin keeps the console asking. */
function useRows({ part, at, source }: PartProps<Part<'table'>>): CursorList<unknown, RowsPage> {
  return useCursorList({
    key: keyOf(source, at, part),
    read: async ({ cursor }, signal): Promise<RowsPage> => {
      const query = { ...part.query, ...(cursor === undefined ? {} : { cursor }) }
      const answer = await dataOf({ ...part, query }, source, signal)
      const { items, count } = itemsOf(answer, part.items)
      const next = part.cursor === undefined ? undefined : valueAt(answer, part.cursor)
      const isCursor = typeof next === 'string' && next !== '' && next.length <= LONGEST_CURSOR && !next.startsWith('{')
      return { items, count, next_cursor: isCursor && items.length > 0 ? next : null }
    },
    itemsOf: page => page.items,
  })
}

const WIDTHS = { number: '6rem', time: '7rem', link: 'minmax(0, 1fr)', text: 'minmax(0, 1fr)' } as const

export function ViewTable(props: PartProps<Part<'table'>>) {
  const { part, at, source, onChanged } = props
  const list = useRows(props)
  const [problem, setProblem] = useState<unknown>()
  const columns: Column<Row>[] = part.columns.map(({ title, value, format = 'text' }, place) => ({
    name: title,
    width: WIDTHS[format],
    isNumber: format === 'number',
    // a narrow window has place for two
    isWide: place > 1,
    sortBy: ({ data }) => sortedBy(valueAt(data, value), format),
    cell: ({ data }) => <Cell value={valueAt(data, value)} format={format} />,
  }))
  const actions = part.actions ?? []
  if (actions.length > 0)
    columns.push({
      name: 'Actions',
      width: `${actions.length * 6}rem`,
      cell: ({ data }) => <Actions actions={actions} row={data} source={source} onChanged={onChanged} onProblem={setProblem} />,
    })
  const rows = list.items.slice(0, MOST_ROWS).map((data, index) => ({ at: index, data }))
  const count = list.pages.reduce((sum, page) => sum + page.count, 0)
  return (
    <Card title={part.title}>
      {problem !== undefined && <Failure error={problem} />}
      <ListTable
        name={part.title}
        columns={columns}
        list={{ ...list, items: rows, hasMore: list.hasMore && rows.length < MOST_ROWS }}
        keyOf={row => String(row.at)}
        {...(source.given ? {} : { orderIn: viewOrderOf(source.name, at) })}
        empty={<Empty title="Nothing here yet" />}
      />
      {count > rows.length && (
        <p className="note">
          The first {rows.length} of {count} rows are shown.
        </p>
      )}
    </Card>
  )
}

/** Numbers are sorted as numbers, all else by its text. */
const sortedBy = (value: unknown, format: Part<'table'>['columns'][number]['format']) => {
  if (value === null || value === undefined) return undefined
  if (format !== 'number') return textOf(value)
  return Number.isFinite(Number(value)) ? Number(value) : undefined
}

const Cell = ({ value, format }: { readonly value: unknown; readonly format: Part<'table'>['columns'][number]['format'] }) => (
  <span title={format === 'time' ? undefined : textOf(value)}>
    <Value value={value} format={format} />
  </span>
)

interface ActionsProps {
  readonly actions: NonNullable<Part<'table'>['actions']>
  readonly row: unknown
  readonly source: ViewSource
  readonly onChanged: () => Promise<unknown>
  readonly onProblem: (error: unknown) => void
}

const NEVER_ENDS = new AbortController().signal

function Actions({ actions, row, source, onChanged, onProblem }: ActionsProps) {
  return (
    <span className="row">
      {actions.map(({ title, request, confirm }, at) => {
        const isAsked = confirm !== undefined || request.startsWith('DELETE ')
        const send = async () => {
          await answerOf(requestOf({ request }, source, { row }), NEVER_ENDS)
          await onChanged()
        }
        // a row has no place for an error
        const act = isAsked ? send : () => send().then(() => onProblem(undefined), onProblem)
        return (
          <Action
            key={at}
            label={title}
            kind="quiet"
            act={act}
            confirm={
              isAsked
                ? { title: `${title}?`, text: <Asked text={confirm} request={shownRequest(request, source, row)} /> }
                : undefined
            }
          />
        )
      })}
    </span>
  )
}

/** The request as it will be sent, or as it is declared if it cannot be. */
function shownRequest(request: string, source: ViewSource, row: unknown): string {
  try {
    const { method, path } = requestOf({ request }, source, { row })
    return `${method} ${path}`
  } catch {
    return request
  }
}

const Asked = ({ text, request }: { readonly text: string | undefined; readonly request: string }) => (
  <>
    {text !== undefined && <p>{text}</p>}
    <p className="muted small">
      The plugin gets <code>{request}</code> with your rights.
    </p>
  </>
)
