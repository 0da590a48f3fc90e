import { type Bail, defineService, type CallContext } from '@svc/core'

/** A service whose hook the hostile plugin taps, and never answers. */
export interface Gong {
  strike(ctx: CallContext): Promise<string>
}
export const Gong = defineService<Gong, { struck: Bail<object, string> }>('gong', {
  api: 1,
  methods: { strike: 'call' },
  hooks: { struck: 'bail' },
})
