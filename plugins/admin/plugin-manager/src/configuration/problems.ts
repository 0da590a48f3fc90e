import { type Config, get, matchesPattern, type Plan, slotsOf, type SvcError } from '@svc/core'
import { toolUnknownInSet } from './errors.ts'

// What `svc config check` and the API find in a configuration beside the plan, and what they cannot find.

/** The plugins of a plan or of a draft. */
interface Checked extends Pick<Plan, 'loaded'> {
  readonly plannedPlugins: readonly Pick<Plan['plannedPlugins'][number], 'plugin' | 'name' | 'config' | 'references'>[]
}

/** Whether a plugin publishes tools over MCP. */
export const isToolServer = ({ plugin }: Checked['plannedPlugins'][number]): boolean => plugin.section === 'mcp.server'

/** Tools of MCP servers are known only when the servers answer. */
const isBridged = (name: string) => name.includes('__')

/** The names of tools in sets of the tool server that no plugin declares. */
export function toolNameProblems(config: Config, { loaded, plannedPlugins }: Checked): SvcError[] {
  const { value } = config
  const server = plannedPlugins.find(isToolServer)
  if (server === undefined || get(value, ['mcp', 'server', 'enabled']) !== true) return []
  // a plugin without a manifest can add any tool
  if (loaded.some(({ found }) => !found.declared)) return []
  const declared = loaded.flatMap(({ found }) =>
    slotsOf(found.manifest).flatMap(([slot, names]) => (slot === 'tools' ? names : []))
  )
  const sets = Object.entries(Object(get(value, ['mcp', 'server', 'sets'])) as object).map(
    ([name, names]) => [`mcp.server.sets.${name}`, names] as const
  )
  return [['mcp.server.tools', get(value, ['mcp', 'server', 'tools'])] as const, ...sets].flatMap(([key, names]) =>
    (Array.isArray(names) ? names : [])
      .filter((name): name is string => typeof name === 'string' && !name.includes('*') && !isBridged(name))
      .filter(name => !declared.some(word => matchesPattern(word, name)))
      .map(name => toolUnknownInSet(server.name, name, config.where(key.split('.')) ?? key, declared))
  )
}

/** What only a start, or a request to another machine, can show. */
export function uncheckedWords({ plannedPlugins, loaded }: Checked, start: boolean): string[] {
  const own = loaded.filter(({ found }) => !found.declared).map(({ name }) => name)
  const secrets = [...new Set(plannedPlugins.flatMap(({ references }) => references.map(({ name }) => name)))]
  const hasWorkflows = plannedPlugins.some(({ plugin }) => plugin.section === 'workflows')
  return [
    'whether the address of the server is free, and a name of this machine',
    'whether model providers, MCP servers, stores and identity providers answer (svc doctor)',
    ...(hasWorkflows ? ['the files of workflows (svc workflows validate <file>)'] : []),
    ...(start ? [] : [`what the ${plannedPlugins.length} plugins check when they start (svc config check --start)`]),
    ...(secrets.length === 0 || start
      ? []
      : [`the secrets ${secrets.join(', ')}, and the settings with them (svc config check --start)`]),
    ...(own.length === 0 || start ? [] : [`the names that plugins without a manifest add: ${own.join(', ')}`]),
  ]
}
