import { Flags, type Interfaces } from '@oclif/core'
import { MCP_SERVE_FLAGS, OF_PORTS, SERVE_FLAGS, type ServeFlag, type ServeFlagName, type ServeOptions } from './serve-flags.ts'

export const serveFlagNames = Object.keys(SERVE_FLAGS) as ServeFlagName[]

/** The options of `svc serve` that are configuration: what looks at the configuration takes them too. */
export const settingFlagNames = serveFlagNames.filter(name => name !== 'json' && name !== 'watch')

/** Options of the table in oclif's form. */
export function oclifFlags(names: readonly ServeFlagName[]): Interfaces.FlagInput {
  return Object.fromEntries(names.map(name => [name, oclifFlag(SERVE_FLAGS[name])]))
}

/** The options of `svc mcp serve` in oclif's form. */
export const mcpServeFlags = (): Interfaces.FlagInput => ({
  ...Object.fromEntries(Object.entries(MCP_SERVE_FLAGS).map(([name, flag]) => [name, oclifFlag(flag)])),
  stdio: Flags.boolean({ summary: MCP_SERVE_FLAGS.stdio.summary, exclusive: [...OF_PORTS] }),
})

function oclifFlag({ type, summary, value, char }: ServeFlag) {
  const common = { summary, ...(char ? { char } : {}), ...(value ? { helpValue: `<${value}>` } : {}) }
  if (type === 'switch') return Flags.boolean(common)
  return type === 'integer' ? Flags.integer(common) : Flags.string(common)
}

/** What oclif read, as the rest of the command line takes it. */
export function optionsOf(flags: Readonly<Record<string, unknown>>, names: readonly string[] = serveFlagNames): ServeOptions {
  return Object.fromEntries(names.filter(name => flags[name] !== undefined).map(name => [name, flags[name]])) as ServeOptions
}
