import { useState } from 'react'
import { useAddress } from './address.tsx'

/** A column by which a table is sorted. */
export interface Order {
  readonly name: string
  readonly isDown: boolean
}

/** `-Cost` is down. A name that begins with a sign has one of its own before it: `+-1`. */
const orderIn = (text: string | undefined): Order | undefined =>
  text === undefined ? undefined : { name: text.replace(/^[-+]/, ''), isDown: text.startsWith('-') }
const textOf = (order: Order | undefined) => order && `${order.isDown ? '-' : /^[-+]/.test(order.name) ? '+' : ''}${order.name}`

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
