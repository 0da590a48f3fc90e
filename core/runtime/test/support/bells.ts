import { defineService, type CallContext, type Waterfall } from '@svc/core'

/** The service of the plugin that the tests of isolation run. */
export interface Bells {
  pid(ctx: CallContext): Promise<number>
  env(name: string, ctx: CallContext): Promise<string | undefined>
  /** What it sees in the slot it requires. */
  seen(ctx: CallContext): Promise<string[]>
  press(name: string, ctx: CallContext): Promise<string>
  toll(value: string, ctx: CallContext): Promise<string>
  grow(name: string, ctx: CallContext): Promise<void>
  shrink(ctx: CallContext): Promise<void>
  die(ctx: CallContext): Promise<void>
  chimes(to: number, ctx: CallContext): AsyncIterable<number>
}
interface BellsHooks {
  tolled: Waterfall<string>
}
export const Bells = defineService<Bells, BellsHooks>('bells', {
  api: 1,
  methods: {
    pid: 'call',
    env: 'call',
    seen: 'call',
    press: 'call',
    toll: 'call',
    grow: 'call',
    shrink: 'call',
    die: 'call',
    chimes: 'stream',
  },
  hooks: { tolled: 'waterfall' },
})
