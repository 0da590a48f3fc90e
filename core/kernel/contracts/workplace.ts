import { defineService, type CallContext } from '@svc/core'

/** Knows the folders that tools work in. Who has no folders of its own in its configuration asks here. */
export interface Workplace {
  /** Folders of this machine, absolute. */
  roots(ctx: CallContext): Promise<readonly string[]>
}

export const Workplace = defineService<Workplace>('workplace', { api: 1, methods: { roots: 'call' } })
