import type { Host, PluginReport } from '@svc/core'
import type { Check, CheckReport } from '@svc/core/contracts'

/** What `/health` says of the isolated plugins. */
export const pluginsCheck = (host: Host): Check => ({
  probe: async use => reportOf((await host.report(use)).plugins),
})

function reportOf(plugins: readonly PluginReport[]): CheckReport {
  const isolated = plugins.filter(one => one.isolation === 'process')
  const out = isolated.filter(one => one.state === 'quarantined' || one.state === 'restarting')
  const detail = Object.fromEntries(isolated.map(one => [nameOf(one), { state: one.state, restarts: one.restarts ?? 0 }]))
  if (out.length === 0) return { status: 'healthy', detail }
  return { status: 'degraded', reason: out.map(one => `${nameOf(one)} is ${one.state}`).join(', '), detail }
}

/** A plugin that is set up for several entries of the configuration is told with each of them. */
const nameOf = ({ name, instance }: PluginReport) => (instance === undefined ? name : `${name} (${instance})`)
