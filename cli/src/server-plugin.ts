import { definePlugin, type PluginEntry, type RunningHost, systemContext } from '@svc/core'
import { Configuration, ServerControl } from '@svc/core/contracts'
import { fromWire, reachServer } from '@svc/runtime'
import { notStartedYet } from './errors.ts'

/** The reason of a reload, as its log shows it. */
const RELOAD = 'svc reload over HTTP'

/** The services `ServerControl` and `Configuration` of a worker. `started` gives them the host that they describe. */
export function serverPlugin(home: string): { readonly entry: PluginEntry; started(host: RunningHost): void } {
  const late: { host?: RunningHost } = {}
  const plan = () => {
    if (!late.host) throw notStartedYet()
    return late.host.plan()
  }
  // most workers never need it
  const configuration = async () => (await import('./configuration.ts')).createConfiguration({ home, plan })
  const services: ServerControl & Configuration = {
    async reload(ctx) {
      const [{ publicProblems }, server] = await Promise.all([
        import('./configuration.ts'),
        reachServer(home, { fits: ({ pid }) => pid === process.ppid }),
      ])
      using _server = server
      // the reload goes on when the client leaves
      const { problems, workers } = await server.control.reload(systemContext(ctx.signal, RELOAD))
      return {
        problems: publicProblems(problems.map(fromWire), home),
        workers: workers.map(({ name, state, generation }) => ({ name, state, generation })),
      }
    },
    read: async ctx => (await configuration()).read(ctx),
    schema: async ctx => (await configuration()).schema(ctx),
    check: async (draft, ctx) => (await configuration()).check(draft, ctx),
    change: async (values, ifVersion, ctx) => (await configuration()).change(values, ifVersion, ctx),
  }
  const use = definePlugin({ provides: ServerControl, alsoProvides: [Configuration], setup: () => services })
  return { entry: { name: 'server-control', use }, started: host => void (late.host = host) }
}
