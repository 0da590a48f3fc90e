import {
  type ColumnDef,
  columnVisibilityFeature,
  createSortedRowModel,
  type Header,
  type RowData,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table'
import { type ReactNode, useMemo } from 'react'
import { useNarrow } from './media.ts'
import { OrderButton, useOrder } from './order.tsx'

export interface Column<Item> {
  readonly name: string
  readonly cell: (item: Item) => ReactNode
  /** As in `grid-template-columns`: `minmax(0, 1fr)`, `8rem`. */
  readonly width: string
  readonly isNumber?: boolean
  /** Of a column with buttons, at the end of a row: only screen readers have the title. */
  readonly isTitleHidden?: boolean
  /** Left out where the window is narrow. */
  readonly isWide?: boolean
  /** What a whole list is sorted by. Items without a value come last. */
  readonly sortBy?: (item: Item) => string | number | null | undefined
}

interface ItemTable<Item> {
  readonly columns: readonly Column<Item>[]
  readonly items: readonly Item[]
  readonly keyOf: (item: Item) => string
  /** The items are a part of the list, which cannot be sorted. */
  readonly isPart?: boolean
  /** The member of the address that has the order. Without it, the order is forgotten with the table. */
  readonly orderIn?: string | undefined
}

const features = tableFeatures({ columnVisibilityFeature, rowSortingFeature, sortedRowModel: createSortedRowModel() })
type Features = typeof features

const collator = new Intl.Collator('en', { numeric: true })

/** Numbers by size, texts as people do. */
const compare = (a: unknown, b: unknown) =>
  typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))

function defsOf<Item extends RowData>(columns: readonly Column<Item>[]): ColumnDef<Features, Item>[] {
  return columns.map(({ name, isNumber = false, sortBy }, at) => ({
    // two columns of a plugin can have the same name
    id: String(at),
    header: name,
    accessorFn: item => sortBy?.(item) ?? undefined,
    enableSorting: sortBy !== undefined,
    sortFn: (a, b, id) => compare(a.getValue(id), b.getValue(id)),
    sortUndefined: 'last',
    sortDescFirst: isNumber,
  }))
}

/** The items as the rows of a table. The reader chooses their order, the width of the window the columns. */
export function useItemTable<Item extends RowData>({ columns, items, keyOf, isPart = false, orderIn }: ItemTable<Item>) {
  const isNarrow = useNarrow()
  const [order, setOrder] = useOrder(orderIn)
  const defs = useMemo(() => defsOf(columns), [columns])
  const at = columns.findIndex(({ name, sortBy }) => name === order?.name && sortBy)
  return useTable({
    features,
    columns: defs,
    data: items,
    getRowId: keyOf,
    enableSorting: !isPart,
    enableMultiSort: false,
    state: {
      sorting: order && at >= 0 && !isPart ? [{ id: String(at), desc: order.isDown }] : [],
      columnVisibility: Object.fromEntries(columns.map(({ isWide = false }, index) => [String(index), !(isWide && isNarrow)])),
    },
    onSortingChange(update) {
      const [next] =
        typeof update === 'function' ? update(order && at >= 0 ? [{ id: String(at), desc: order.isDown }] : []) : update
      setOrder(next && { name: columns[Number(next.id)]!.name, isDown: next.desc })
    },
  })
}

interface TitleProps<Item extends RowData> {
  readonly header: Header<Features, Item>
  /** Only screen readers have it. */
  readonly isHidden?: boolean | undefined
}

/** The title of a column. A column that can be sorted is a button: one way, the other, and as the server sends it. */
export const ColumnTitle = <Item extends RowData>({ header: { column }, isHidden }: TitleProps<Item>) => {
  const title = String(column.columnDef.header)
  if (isHidden) return <span className="visually-hidden">{title}</span>
  if (!column.getCanSort()) return title
  return <OrderButton name={title} order={column.getIsSorted()} onClick={() => column.toggleSorting()} />
}

/** The attribute of a header that says how the table is sorted. */
export function orderOf<Item extends RowData>({ column }: Header<Features, Item>): 'ascending' | 'descending' | undefined {
  const sorted = column.getIsSorted()
  return sorted === false ? undefined : `${sorted}ending`
}
