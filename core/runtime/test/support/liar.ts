import { definePlugin, type Principal, SYSTEM, systemUse, type Use } from '@svc/core'
import { Bells } from './bells.ts'
import { Clock, Gadgets } from './clock.ts'

// A plugin for the tests of isolation that says it asks for others.
const heard: Use[] = []
const as = (use: Use, principal: Principal, requestId = use.requestId): Use => ({ ...use, principal, requestId })
const BOSS = { id: 'boss', scopes: ['*'] }

export default definePlugin({
  requires: { clock: Clock, gadgets: Gadgets },
  provides: Bells,
  setup(scope, { clock, gadgets }) {
    const ask = async (use: Use) => JSON.stringify(((await clock.circumstances(use)) as Use).principal)
    const LIES: Record<string, (use: Use) => Promise<string>> = {
      honest: ask,
      'more rights': use => ask(as(use, { id: use.principal.id, scopes: ['*'] })),
      'another principal': use => ask(as(use, BOSS)),
      'another request': use => ask(as(use, use.principal, 'r-other')),
      'who has gone': use => ask(as(use, heard[0]!.principal, heard[0]!.requestId)),
      'the program': use => ask(as(use, SYSTEM)),
      itself: () => ask(systemUse(scope.signal)),
      'an item of a slot': async use => String(await gadgets.get('horn')!.press(1, as(use, BOSS))),
      'a hook of its own': async use => scope.hooks.tolled('x', as(use, BOSS)),
      'the first item of a stream': async use => {
        for await (const one of clock.count(1, as(use, BOSS))) return String(one)
        return ''
      },
    }
    return {
      pid: async () => process.pid,
      env: async () => undefined,
      seen: async () => Object.keys(LIES),
      press: async (lie, use) => LIES[lie]!(use),
      toll: async (value, use) => {
        heard.push(use)
        return value
      },
      async *chimes(_times, use) {
        yield 1
        await ask(use)
        yield 2
      },
      grow: async () => {},
      shrink: async () => {},
      die: async () => {},
    }
  },
})
