import { useState } from 'react'
import { useAddress } from './address.tsx'

/** A column by which a table is sorted. */
export interface Order {
  readonly name: string
  readonly isDown: boolean
}

const orderIn = (text: string | undefined): Order | undefined =>
  text === undefined ? undefined : text.startsWith('-') ? { name: text.slice(1), isDown: true } : { name: text, isDown: false }
const textOf = (order: Order | undefined) => order && `${order.isDown ? '-' : ''}${order.name}`

/** The order of a table: in a member of the address, such as `-Cost`, or as long as the table is shown. */
export function useOrder(member: string | undefined): readonly [Order | undefined, (order: Order | undefined) => void] {
  const [own, setOwn] = useState<Order>()
  const [search, change] = useAddress()
  if (member === undefined) return [own, setOwn]
  return [orderIn(search[member]), order => change({ [member]: textOf(order) })]
}

const ARROWS = { asc: '↑', desc: '↓' } as const

interface OrderButtonProps {
  readonly name: string
  readonly order: 'asc' | 'desc' | false
  readonly onClick: () => void
}

/** The title of a column by which the reader can sort. */
export const OrderButton = ({ name, order, onClick }: OrderButtonProps) => (
  <button type="button" className="order-button" onClick={onClick}>
    {name}
    <span aria-hidden="true" className="order-arrow">
      {order === false ? '' : ARROWS[order]}
    </span>
  </button>
)
