import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { definePlugin, defineService, type CallContext } from '@svc/core'
import { Checks } from '@svc/core/contracts'

/** A service of a plugin whose module no longer loads after its first death, and blocks nothing. */
export interface Sleepless {
  go(ctx: CallContext): Promise<void>
}
export const Sleepless = defineService<Sleepless>('sleepless', { api: 1, methods: { go: 'call' } })

const TRACE = process.env.TRACE ?? ''
if (existsSync(TRACE) && readFileSync(TRACE, 'utf8').includes('died')) await new Promise(() => {})

export default definePlugin({
  // a slot, whose items it gets before its setup
  requires: { checks: Checks },
  provides: Sleepless,
  setup: () => ({
    async go() {
      appendFileSync(TRACE, 'died')
      process.exit(9)
    },
  }),
})
