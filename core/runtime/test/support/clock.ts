import { type Bail, defineService, defineSlot, type Use } from '@svc/core'

/** A contract for the tests of what crosses a process. */
export interface Clock {
  echo(value: unknown, use: Use): Promise<unknown>
  /** What the far side sees of `use`. */
  circumstances(use: Use): Promise<unknown>
  fail(how: 'coded' | 'foreign' | 'unplain', use: Use): Promise<void>
  /** Answers when its signal aborts, with the reason's code. */
  wait(use: Use): Promise<string>
  /** Never answers, whatever its signal says. */
  hang(use: Use): Promise<void>
  /** Bytes of that size. */
  bytes(size: number, use: Use): Promise<Uint8Array>
  count(to: number, use: Use): AsyncIterable<number>
  /** Yields 1, then waits for its signal. */
  tick(use: Use): AsyncIterable<number>
  cheat(use: Use): AsyncIterable<unknown>
}
export interface ClockHooks {
  ring: Bail<string, string>
}
export const Clock = defineService<Clock, ClockHooks>('clock', {
  api: 1,
  methods: {
    echo: 'call',
    circumstances: 'call',
    fail: 'call',
    wait: 'call',
    hang: 'call',
    bytes: 'call',
    count: 'stream',
    tick: 'stream',
    cheat: 'stream',
  },
  hooks: { ring: 'bail' },
})

/** Things by name, for the tests of slots. */
export interface Gadget {
  readonly colour: string
  press(times: number, use: Use): Promise<string>
  hum(use: Use): AsyncIterable<string>
  extra?(use: Use): Promise<void>
}
export const Gadgets = defineSlot<Gadget>('gadgets', { api: 1, methods: { press: 'call', hum: 'stream', extra: 'call' } })

/** What a clock has done. */
export interface ClockLog {
  produced: number
  finished: string[]
  aborted: string[]
}
export interface Watch {
  look(use: Use): Promise<ClockLog>
}
export const Watch = defineService<Watch>('watch', { api: 1, methods: { look: 'call' } })
