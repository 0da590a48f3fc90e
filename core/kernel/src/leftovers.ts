import { closeFailed, type SvcError } from './errors.ts'
import type { Hooks } from './hooks.ts'
import type { Slot } from './slot.ts'

/** What is still in the slots and on the hooks of a host whose plugins have all been undone. */
export function leftovers(slots: Map<string, Slot>, hooks: Hooks): SvcError[] {
  const items = [...slots].flatMap(([slot, { view }]) =>
    view.names().map(name => ({ plugin: view.owner(name) ?? 'svc', what: `${slot}/${name} is still there` }))
  )
  const taps = hooks.tapped().map(id => ({ plugin: 'svc', what: `${id} is still tapped` }))
  return [...items, ...taps].map(one => closeFailed(one.plugin, 'left over', new Error(one.what)))
}
