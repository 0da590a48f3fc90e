import { type Bail, defineService, defineSlot, type CallContext } from '@svc/core'

/** A contract for the tests of what crosses a process. */
export interface Clock {
  echo(value: unknown, ctx: CallContext): Promise<unknown>
  /** What the far side sees of `ctx`. */
  circumstances(ctx: CallContext): Promise<unknown>
  fail(how: 'coded' | 'foreign' | 'unplain', ctx: CallContext): Promise<void>
  /** Answers when its signal aborts, with the reason's code. */
  wait(ctx: CallContext): Promise<string>
  /** Never answers, whatever its signal says. */
  hang(ctx: CallContext): Promise<void>
  /** Bytes of that size. */
  bytes(size: number, ctx: CallContext): Promise<Uint8Array>
  count(to: number, ctx: CallContext): AsyncIterable<number>
  /** Yields 1, then waits for its signal. */
  tick(ctx: CallContext): AsyncIterable<number>
  cheat(ctx: CallContext): AsyncIterable<unknown>
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
  press(times: number, ctx: CallContext): Promise<string>
  hum(ctx: CallContext): AsyncIterable<string>
  extra?(ctx: CallContext): Promise<void>
}
export const Gadgets = defineSlot<Gadget>('gadgets', { api: 1, methods: { press: 'call', hum: 'stream', extra: 'call' } })

/** What a clock has done. */
export interface ClockLog {
  produced: number
  finished: string[]
  aborted: string[]
}
export interface Watch {
  look(ctx: CallContext): Promise<ClockLog>
}
export const Watch = defineService<Watch>('watch', { api: 1, methods: { look: 'call' } })
