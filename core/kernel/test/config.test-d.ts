import { type ConfigFor, defineConfig, definePlugin, schema } from '@svc/core'
import { expectTypeOf } from 'expect-type'

const http = definePlugin({
  section: 'server',
  config: schema<{ port: number; hosts: readonly string[]; tls: { cert: string } }>({}),
  setup() {},
})
const auth = definePlugin({ section: 'server.auth', config: schema<{ enabled: boolean }>({}), setup() {} })
const provider = definePlugin({ instances: 'providers', type: 'local', config: schema<{ model: string }>({}), setup() {} })
const bare = definePlugin({ setup() {} })
/** As `typeof import('…')` has it. */
interface Module {
  readonly default: typeof http
}

type Build = [typeof http, typeof auth, typeof provider, typeof bare]
expectTypeOf<ConfigFor<Build>['server']>().not.toEqualTypeOf<unknown>()

// Every key is optional, at every depth; sections of several plugins nest.
defineConfig<Build>({})
defineConfig<Build>({ server: {} })
defineConfig<Build>({
  server: { port: 1, tls: {}, auth: { enabled: true } },
  log: { level: 'debug' },
  host: { tap_timeout_ms: 1 },
})
defineConfig<Build>({ plugins: ['a', new URL('file:///a'), { use: 'b', optional: true, enabled: false }] })
defineConfig<[Module]>({ server: { port: 1 } })

// @ts-expect-error a wrong value
defineConfig<Build>({ server: { port: '80' } })
// @ts-expect-error a wrong key
defineConfig<Build>({ server: { prot: 80 } })
// @ts-expect-error a wrong value deep down
defineConfig<Build>({ server: { tls: { cert: 5 } } })
// @ts-expect-error a wrong value in a nested section
defineConfig<Build>({ server: { auth: { enabled: 'yes' } } })
// @ts-expect-error a wrong key in a nested section
defineConfig<Build>({ server: { auth: { enable: true } } })
// @ts-expect-error a section of a plugin that is not in the build
defineConfig<[typeof auth]>({ server: { port: 1 } })
// @ts-expect-error a wrong item of a list
defineConfig<Build>({ server: { hosts: [5] } })
// @ts-expect-error an unknown section
defineConfig<Build>({ sever: {} })
// @ts-expect-error a level that there is not
defineConfig<Build>({ log: { level: 'loud' } })
// @ts-expect-error an entry of plugins without use
defineConfig<Build>({ plugins: [{ optional: true }] })
// @ts-expect-error an entry of plugins with a wrong key
defineConfig<Build>({ plugins: [{ use: 'a', optinal: true }] })
// @ts-expect-error a module's plugin is typed too
defineConfig<[Module]>({ server: { port: '80' } })
