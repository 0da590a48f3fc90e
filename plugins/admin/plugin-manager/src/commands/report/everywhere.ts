import { type PluginReport, systemContext } from '@svc/core'
import { findServers, type FoundServer } from '@svc/runtime'
import { here } from '@svc/cli/program'
import { asTheyAre, type ServerPlugins } from './live.ts'

const ASK_MS = 10_000

/** The plugins that are meant, as each server of the home has them now. None: no server runs. */
export async function reportsOf(isMeant: (plugin: PluginReport) => boolean): Promise<ServerPlugins[]> {
  using stack = new DisposableStack()
  const servers = (await findServers(here().home)).map(server => stack.use(server))
  return await Promise.all(servers.map(server => reportOf(server, isMeant)))
}

async function reportOf({ control, info }: FoundServer, isMeant: (plugin: PluginReport) => boolean): Promise<ServerPlugins> {
  const { plugins } = await control.report(systemContext(AbortSignal.timeout(ASK_MS)))
  return asTheyAre(plugins.filter(isMeant), info)
}
