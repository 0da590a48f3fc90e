import { existsSync, writeFileSync } from 'node:fs'
import { definePlugin, defineService, schema, type CallContext } from '@svc/core'

/** A service of which less is there after its first death. */
export interface Fading {
  stay(ctx: CallContext): Promise<string>
  go(ctx: CallContext): Promise<string>
}
export const Fading = defineService<Fading>('fading', { api: 1, methods: { stay: 'call', go: 'call' } })

export default definePlugin({
  section: 'fading',
  config: schema<{ trace: string }>({ type: 'object', properties: { trace: { type: 'string' } }, required: ['trace'] }),
  provides: Fading,
  setup({ config }) {
    const stay = async () => 'here'
    if (existsSync(config.trace)) return { stay } as unknown as Fading
    writeFileSync(config.trace, '')
    return { stay, go: async () => process.exit(9) }
  },
})
