import { definePlugin, type Principal, SYSTEM, systemContext, type CallContext } from '@svc/core'
import { Bells } from './bells.ts'
import { Clock, Gadgets } from './clock.ts'

// A plugin for the tests of isolation that says it asks for others.
const heard: CallContext[] = []
const as = (ctx: CallContext, principal: Principal, requestId = ctx.requestId): CallContext => ({ ...ctx, principal, requestId })
const BOSS = { id: 'boss', scopes: ['*'] }

export default definePlugin({
  requires: { clock: Clock, gadgets: Gadgets },
  provides: Bells,
  setup(scope, { clock, gadgets }) {
    const ask = async (ctx: CallContext) => JSON.stringify(((await clock.circumstances(ctx)) as CallContext).principal)
    const LIES: Record<string, (ctx: CallContext) => Promise<string>> = {
      honest: ask,
      'more rights': ctx => ask(as(ctx, { id: ctx.principal.id, scopes: ['*'] })),
      'another principal': ctx => ask(as(ctx, BOSS)),
      'another request': ctx => ask(as(ctx, ctx.principal, 'r-other')),
      'who has gone': ctx => ask(as(ctx, heard[0]!.principal, heard[0]!.requestId)),
      'the program': ctx => ask(as(ctx, SYSTEM)),
      itself: () => ask(systemContext(scope.signal)),
      'an item of a slot': async ctx => String(await gadgets.get('horn')!.press(1, as(ctx, BOSS))),
      'a hook of its own': async ctx => scope.hooks.tolled('x', as(ctx, BOSS)),
      'the first item of a stream': async ctx => {
        for await (const item of clock.count(1, as(ctx, BOSS))) return String(item)
        return ''
      },
    }
    return {
      pid: async () => process.pid,
      env: async () => undefined,
      seen: async () => Object.keys(LIES),
      press: async (lie, ctx) => LIES[lie]!(ctx),
      toll: async (value, ctx) => {
        heard.push(ctx)
        return value
      },
      async *chimes(_times, ctx) {
        yield 1
        await ask(ctx)
        yield 2
      },
      grow: async () => {},
      shrink: async () => {},
      die: async () => {},
    }
  },
})
