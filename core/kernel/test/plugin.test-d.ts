import { definePlugin, defineService, defineSlot, type Scope, schema, type SlotView, type CallContext } from '@svc/core'
import { expectTypeOf } from 'expect-type'
import { Greeter, type Word, Words } from './support/kernel.ts'

// What is asked for is given, and typed.
definePlugin({
  section: 'a',
  config: schema<{ port: number }>({}),
  requires: { greeter: Greeter, words: Words },
  setup(scope, given) {
    expectTypeOf(scope.config).toEqualTypeOf<{ port: number }>()
    expectTypeOf(given.greeter).toEqualTypeOf<Greeter>()
    expectTypeOf(given.words).toEqualTypeOf<SlotView<Word>>()
    // @ts-expect-error what was not asked for is not there
    void given.chat
    // @ts-expect-error nor is what no key of the configuration is
    void scope.config.prot
  },
})

// What is optional may be missing.
definePlugin({
  optional: { greeter: Greeter },
  setup(_scope, given) {
    expectTypeOf(given.greeter).toEqualTypeOf<Greeter | undefined>()
    // @ts-expect-error it may be missing
    void given.greeter.greet
  },
})

definePlugin({
  // @ts-expect-error a slot is never optional
  optional: { words: Words },
  setup() {},
})

// A plugin that provides a service returns it.
definePlugin({ provides: Greeter, setup: () => ({ greet: async (name: string) => name }) })
// @ts-expect-error it answers with a number
definePlugin({ provides: Greeter, setup: () => ({ greet: async () => 5 }) })
// @ts-expect-error it answers at once
definePlugin({ provides: Greeter, setup: () => ({ greet: (name: string) => name }) })
// @ts-expect-error it lacks a method
definePlugin({ provides: Greeter, setup: () => ({}) })
// @ts-expect-error it returns nothing
definePlugin({ provides: Greeter, setup() {} })
// @ts-expect-error who provides nothing returns nothing
definePlugin({ setup: () => ({ greet: async () => '' }) })

// A plugin calls the hooks of the service that it provides, and of no other.
definePlugin({
  provides: Greeter,
  setup(scope) {
    expectTypeOf(scope.hooks.before).returns.toEqualTypeOf<Promise<string>>()
    expectTypeOf(scope.hooks.refuse).returns.toEqualTypeOf<Promise<string | undefined>>()
    expectTypeOf(scope.hooks.greeted).returns.toEqualTypeOf<Promise<void>>()
    return {
      greet: async (name, ctx) => {
        // @ts-expect-error the hook passes text
        await scope.hooks.before(5, ctx)
        // @ts-expect-error use is compulsory
        await scope.hooks.before(name)
        return name
      },
    }
  },
})
definePlugin({
  setup(scope) {
    // @ts-expect-error it provides no service
    void scope.hooks.before
  },
})

declare const scope: Scope

// A contribution is what the slot holds.
expectTypeOf(scope.add(Words, 'hi', { text: 'hi', say: async () => 'hi' })).toEqualTypeOf<() => void>()
// @ts-expect-error it has no say
scope.add(Words, 'hi', { text: 'hi' })
// @ts-expect-error its say answers with a number
scope.add(Words, 'hi', { text: 'hi', say: async () => 5 })
// @ts-expect-error its data is of another type
scope.add(Words, 'hi', { text: 5, say: async () => '' })
// @ts-expect-error a service is no slot
scope.add(Greeter, 'hi', { greet: async () => '' })

// A tap answers as the kind of its hook says.
scope.tap(Greeter.hooks.before, (name, ctx) => {
  expectTypeOf(name).toEqualTypeOf<string>()
  expectTypeOf(ctx).toEqualTypeOf<CallContext>()
  return name
})
scope.tap(Greeter.hooks.refuse, async () => undefined)
scope.tap(Greeter.hooks.refuse, () => 'no')
scope.tap(Greeter.hooks.greeted, async () => {})
// @ts-expect-error a waterfall returns the next value
scope.tap(Greeter.hooks.before, () => {})
// @ts-expect-error of the same type
scope.tap(Greeter.hooks.before, async () => 5)
// @ts-expect-error a bail answers as its hook says
scope.tap(Greeter.hooks.refuse, () => 5)
// @ts-expect-error a tap of text takes no number
scope.tap(Greeter.hooks.before, (name: number) => String(name))
// @ts-expect-error there is no such hook
scope.tap(Greeter.hooks.after, () => {})
// @ts-expect-error an option has another type
scope.tap(Greeter.hooks.greeted, () => {}, { stage: 'early' })

// The word of a method follows from its interface.
interface Radio {
  play(ctx: CallContext): Promise<void>
  listen(ctx: CallContext): AsyncIterable<string>
}
defineService<Radio>('radio', { api: 1, methods: { play: 'call', listen: 'stream' } })
// @ts-expect-error listen is a stream
defineService<Radio>('radio', { api: 1, methods: { play: 'call', listen: 'call' } })
// @ts-expect-error play is a call
defineService<Radio>('radio', { api: 1, methods: { play: 'stream', listen: 'stream' } })
// @ts-expect-error listen is missing
defineService<Radio>('radio', { api: 1, methods: { play: 'call' } })
// @ts-expect-error there is no stop
defineService<Radio>('radio', { api: 1, methods: { play: 'call', listen: 'stream', stop: 'call' } })
// @ts-expect-error a method that answers at once can be no member of a contract
defineService<{ now(): number }>('clock', { api: 1, methods: { now: 'call' } })

interface RadioHooks {
  tuned: { readonly kind: 'series'; readonly value: string; readonly answer: void }
}
// @ts-expect-error tuned is a series
defineService<Radio, RadioHooks>('radio', { api: 1, methods: { play: 'call', listen: 'stream' }, hooks: { tuned: 'bail' } })
// An optional method of an item stands in the table, data does not.
defineSlot<{ readonly label: string; go?(ctx: CallContext): Promise<void> }>('things', { api: 1, methods: { go: 'call' } })
type Labelled = { readonly label: string; go(ctx: CallContext): Promise<void> }
// @ts-expect-error label is data
defineSlot<Labelled>('things', { api: 1, methods: { go: 'call', label: 'call' } })
