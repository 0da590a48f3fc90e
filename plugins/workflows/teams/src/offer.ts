import type { SlotView } from '@svc/core'
import type { TeamDefinition } from '@svc/core/contracts'

/** Offers something that tells of the teams there are, as long as there is one; anew whenever they have changed. */
export function createOffer(slot: SlotView<TeamDefinition>, add: (known: readonly TeamDefinition[]) => () => void): () => void {
  let remove = () => {}
  return () => {
    remove()
    const known = slot.entries().map(([, team]) => team)
    remove = known.length > 0 ? add(known) : () => {}
  }
}
