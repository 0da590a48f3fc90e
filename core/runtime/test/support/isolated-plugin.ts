import { writeFileSync } from 'node:fs'
import { definePlugin, schema, svcError } from '@svc/core'
import { Clock, Gadgets } from './clock.ts'
import { createClock } from './create-clock.ts'
import { Bells } from './bells.ts'

// A plugin for the tests of isolation; the same file runs in the host's process and in one of its own.
interface BellConfig {
  readonly colour: string
  readonly trace?: string
  readonly taken?: boolean
}
export default definePlugin({
  section: 'bells',
  config: schema<BellConfig>({
    type: 'object',
    properties: { colour: { type: 'string', default: 'red' }, trace: { type: 'string' }, taken: { type: 'boolean' } },
    additionalProperties: false,
  }),
  requires: { clock: Clock, gadgets: Gadgets },
  provides: Bells,
  setup(scope, { clock, gadgets }) {
    const trace = (what: string) => {
      if (scope.config.trace) writeFileSync(scope.config.trace, `${what}\n`, { flag: 'a' })
    }
    const remove: (() => void)[] = []
    scope.add(Gadgets, scope.config.taken ? 'horn' : 'bell', {
      colour: scope.config.colour,
      press: async (times, ctx) => `${String(await clock.echo('ding', ctx))} ${times} ${ctx.principal.id}`,
      async *hum() {
        try {
          for (let i = 0; ; i++) yield `hum ${i}`
        } finally {
          trace('hum ended')
        }
      },
    })
    scope.tap(Clock.hooks.ring, async (value, ctx) => {
      if (value === 'blame') throw svcError('BELL_CRACKED', 'it is cracked', { plugin: 'clocks' })
      return value === 'wake' ? `${value} up, ${ctx.requestId}` : undefined
    })
    scope.defer(() => trace('closed'))
    scope.log.info({ colour: scope.config.colour }, 'the bell is hung')
    return {
      pid: async () => process.pid,
      env: async name => process.env[name],
      seen: async () => gadgets.entries().map(([name, { colour }]) => `${name} ${colour} of ${gadgets.owner(name)}`),
      press: (name, ctx) => gadgets.get(name)!.press(3, ctx),
      toll: async (value, ctx) => scope.hooks.tolled(value, ctx),
      async grow(name) {
        remove.push(scope.add(Gadgets, name, { colour: 'green', press: async () => 'grown', async *hum() {} }))
      },
      async shrink() {
        remove.pop()?.()
      },
      async die() {
        process.exit(9)
      },
      chimes: createClock().count,
    }
  },
})
