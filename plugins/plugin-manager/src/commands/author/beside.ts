import { mergeConfig, type PluginRef, planHost, type Plugin } from '@svc/core'
import { DEFAULTS, hostOptions, OURS } from '@svc/cli/program'

/** What an author has beside his plugin when nobody says anything else: nothing that would need a key or a file. */
const CONFIG = { plugins: DEFAULTS.plugins, providers: { local: {} } }
const NO_FILES: Readonly<Record<string, string>> = { '@svc/plugin-store-sqlite': '@svc/plugin-store-memory' }

/** The curated plugins that give a plugin the services it needs, and those what they need; provider-local where there is a chat. */
export async function curatedFor(plugin: Plugin | undefined, runtime: string | undefined, home: string): Promise<PluginRef[]> {
  const wanted = [...servicesOf(plugin), ...(runtime === undefined ? [] : [`runtime.${runtime}`])]
  if (wanted.length === 0) return []
  const { loaded } = await planHost(hostOptions(mergeConfig([{ name: 'defaults', value: CONFIG }]), home))
  const needed = new Map<string, (typeof loaded)[number]>()
  for (const service of wanted) {
    const giver = loaded.find(one => one.plugin.provides?.name === service)
    if (!giver || needed.has(giver.name)) continue
    needed.set(giver.name, giver)
    // what is added here is gone through, too
    wanted.push(...servicesOf(giver.plugin))
  }
  const local = wanted.includes('chat') ? loaded.filter(one => one.name === '@svc/plugin-provider-local') : []
  return [...needed.values(), ...local].map(({ name }) => ({ use: NO_FILES[name] ?? name, from: OURS }))
}

const servicesOf = (plugin: Plugin | undefined): string[] =>
  Object.values(plugin?.requires ?? {}).flatMap(token => (token.what === 'service' ? [token.name] : []))
