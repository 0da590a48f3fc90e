import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react'
import { type Change, SearchLink } from './address.tsx'
import { useRowHeight } from './density.ts'
import { type CursorList, ListHead, ListStates, More, moveFocus } from './list.tsx'

export interface Column<Item> {
  readonly name: string
  readonly cell: (item: Item) => ReactNode
  /** As in `grid-template-columns`: `minmax(0, 1fr)`, `8rem`. */
  readonly width: string
  readonly isNumber?: boolean
  /** Left out where the window is narrow. */
  readonly isWide?: boolean
}

interface TableProps<Item> {
  readonly name: string
  readonly columns: readonly Column<Item>[]
  readonly items: readonly Item[]
  readonly keyOf: (item: Item) => string
  /** What a row opens: its first cell is the link. Without it, rows are text only. */
  readonly select?: ((item: Item) => Change) | undefined
  readonly isSelected?: (item: Item) => boolean
  /** Follows the last row. */
  readonly more?: ReactNode
}

const classOf = ({ isNumber, isWide }: Column<never>) => `cell${isNumber ? ' number' : ''}${isWide ? ' only-wide' : ''}`
const templateOf = (columns: readonly Column<never>[]) => columns.map(({ width }) => width).join(' ')

/** Rows of equal height. Only those near the window are in the page, however many there are. Arrow keys move through them. */
export function Table<Item>({ name, columns, items, keyOf, select, isSelected, more }: TableProps<Item>) {
  const box = useRef<HTMLDivElement>(null)
  const height = useRowHeight()
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 12,
    getItemKey: at => keyOf(items[at]!),
  })
  useEffect(() => rows.measure(), [rows, height])
  const style = {
    '--columns': templateOf(columns),
    '--columns-narrow': templateOf(columns.filter(({ isWide }) => !isWide)),
  } as CSSProperties
  return (
    <div className="table" style={style} ref={box} tabIndex={0} role="region" aria-label={name} onKeyDown={moveFocus}>
      <div role="table" aria-label={name} aria-rowcount={items.length + 1}>
        <div role="rowgroup" className="table-head">
          <div role="row" aria-rowindex={1} className="table-row">
            {columns.map((column, at) => (
              <span key={at} role="columnheader" className={classOf(column)}>
                {column.name}
              </span>
            ))}
          </div>
        </div>
        <div role="rowgroup" className="table-body" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, key, start }) => {
            const item = items[index]!
            return (
              <div
                key={key}
                role="row"
                aria-rowindex={index + 2}
                className="table-row"
                data-current={isSelected?.(item) || undefined}
                style={{ transform: `translateY(${start}px)` }}
              >
                {columns.map((column, at) => (
                  <span key={at} role="cell" className={classOf(column)}>
                    {at === 0 && select ? (
                      <SearchLink change={select(item)} className="table-link">
                        {column.cell(item)}
                      </SearchLink>
                    ) : (
                      column.cell(item)
                    )}
                  </span>
                ))}
              </div>
            )
          })}
        </div>
      </div>
      {more}
    </div>
  )
}

interface ListTableProps<Item> extends Omit<TableProps<Item>, 'items' | 'more'> {
  readonly list: CursorList<Item>
  readonly empty: ReactNode
}

/** A list as a table, with the states of the list. */
export const ListTable = <Item,>({ list, empty, ...table }: ListTableProps<Item>) => (
  <>
    <ListStates list={list} empty={empty} />
    {list.items.length > 0 && <Table items={list.items} {...table} more={list.hasMore && <More list={list} />} />}
  </>
)

interface TablePageProps<Item> extends Omit<ListTableProps<Item>, 'name'> {
  readonly title: string
  readonly actions?: ReactNode
  readonly filters?: ReactNode
  /** The selected item, which takes the place of the table. */
  readonly detail?: ReactNode
}

/** A list as a table over the whole page. The selected item takes its place. Filters and selection are in the address. */
export function TablePage<Item>({ title, actions, filters, detail, ...table }: TablePageProps<Item>) {
  if (detail) return <div className="reader whole">{detail}</div>
  return (
    <div className="reader whole">
      <ListHead title={title} actions={actions} filters={filters} />
      <ListTable name={title} {...table} />
    </div>
  )
}
