import type { RowData } from '@tanstack/react-table'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react'
import { type Change, SearchLink } from './address.tsx'
import { useRowHeight } from './density.ts'
import { type Column, ColumnTitle, orderOf, useItemTable } from './item-table.tsx'
import { type CursorList, ListHead, ListStates, More, moveFocus } from './list.tsx'

export type { Column } from './item-table.tsx'

interface TableProps<Item> {
  readonly name: string
  readonly columns: readonly Column<Item>[]
  readonly items: readonly Item[]
  readonly keyOf: (item: Item) => string
  /** What a row opens: its first cell is the link. Without it, rows are text only. */
  readonly select?: ((item: Item) => Change) | undefined
  readonly isSelected?: (item: Item) => boolean
  /** Follows the last row: the items are a part of the list, which cannot be sorted. */
  readonly more?: ReactNode
  /** The member of the address that has the order. Without it, the order is forgotten with the table. */
  readonly orderIn?: string
}

const classOf = ({ isNumber = false, isTitleHidden = false }: Column<never>) =>
  isNumber ? 'cell number' : isTitleHidden ? 'cell actions' : 'cell'

/** Rows of equal height. Only those near the window are in the page, however many there are. Arrow keys move through them. */
export function Table<Item extends RowData>(props: TableProps<Item>) {
  const { name, columns, select, isSelected, more, ...rest } = props
  const box = useRef<HTMLDivElement>(null)
  const height = useRowHeight()
  const table = useItemTable({ ...rest, columns, isPart: Boolean(more) })
  const { rows } = table.getRowModel()
  const view = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 12,
    getItemKey: at => rows[at]!.id,
  })
  useEffect(() => view.measure(), [view, height])
  const columnOf = ({ id }: { readonly id: string }) => columns[Number(id)]!
  const widths = table.getVisibleLeafColumns().map(column => columnOf(column).width)
  const style = { '--columns': widths.join(' ') } as CSSProperties
  return (
    <div className="table" style={style} ref={box} tabIndex={0} role="region" aria-label={name} onKeyDown={moveFocus}>
      <div role="table" aria-label={name} aria-rowcount={rows.length + 1}>
        <div role="rowgroup" className="table-head">
          {table.getHeaderGroups().map(({ id, headers }) => (
            <div key={id} role="row" aria-rowindex={1} className="table-row">
              {headers.map(one => (
                <span key={one.id} role="columnheader" className={classOf(columnOf(one.column))} aria-sort={orderOf(one)}>
                  <ColumnTitle header={one} isHidden={columnOf(one.column).isTitleHidden} />
                </span>
              ))}
            </div>
          ))}
        </div>
        <div role="rowgroup" className="table-body" style={{ height: view.getTotalSize() }}>
          {view.getVirtualItems().map(({ index, key, start }) => {
            const row = rows[index]!
            return (
              <div
                key={key}
                role="row"
                aria-rowindex={index + 2}
                className="table-row"
                data-current={isSelected?.(row.original) || undefined}
                style={{ transform: `translateY(${start}px)` }}
              >
                {row.getVisibleCells().map((cell, at) => (
                  <span key={cell.id} role="cell" className={classOf(columnOf(cell.column))}>
                    <Linked change={at === 0 ? select?.(row.original) : undefined}>
                      {columnOf(cell.column).cell(row.original)}
                    </Linked>
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

/** The first cell of a row that opens something. */
const Linked = ({ change, children }: { readonly change: Change | undefined; readonly children: ReactNode }) =>
  change ? (
    <SearchLink change={change} className="table-link">
      {children}
    </SearchLink>
  ) : (
    children
  )

interface ListTableProps<Item> extends Omit<TableProps<Item>, 'items' | 'more'> {
  readonly list: CursorList<Item>
  readonly empty: ReactNode
}

/** A list as a table, with the states of the list. */
export const ListTable = <Item extends RowData>({ list, empty, ...table }: ListTableProps<Item>) => (
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
  /** It is as wide as the page. Without it, it is a column in the middle. */
  readonly isWide?: boolean
}

/** A list as a table over the whole page. The selected item takes its place. Filters and selection are in the address. */
export function TablePage<Item extends RowData>({
  title,
  actions,
  filters,
  detail,
  isWide = false,
  ...table
}: TablePageProps<Item>) {
  if (detail) return <div className={isWide ? 'reader whole' : 'reader whole column'}>{detail}</div>
  return (
    <div className="reader whole">
      <ListHead title={title} actions={actions} filters={filters} />
      <ListTable name={title} {...table} />
    </div>
  )
}
