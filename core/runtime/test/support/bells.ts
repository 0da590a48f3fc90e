import { defineService, type Use, type Waterfall } from '@svc/core'

/** The service of the plugin that the tests of isolation run. */
export interface Bells {
  pid(use: Use): Promise<number>
  env(name: string, use: Use): Promise<string | undefined>
  /** What it sees in the slot it requires. */
  seen(use: Use): Promise<string[]>
  press(name: string, use: Use): Promise<string>
  toll(value: string, use: Use): Promise<string>
  grow(name: string, use: Use): Promise<void>
  shrink(use: Use): Promise<void>
  die(use: Use): Promise<void>
  chimes(to: number, use: Use): AsyncIterable<number>
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
