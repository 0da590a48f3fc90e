import { Command, Flags, type Interfaces } from '@oclif/core'
import { MCP_SERVE_FLAGS, OF_PORTS, SERVE_FLAGS, type ServeFlag, type ServeFlagName, type ServeOptions } from './serve-flags.ts'
import { runServe } from './run-serve.ts'
import { SUMMARIES } from './summaries.ts'

export const serveFlagNames = Object.keys(SERVE_FLAGS) as ServeFlagName[]

/** The options of `svc serve` that are configuration. Commands that read the configuration take them too. */
export const settingFlagNames = serveFlagNames.filter(name => name !== 'json' && name !== 'watch')

/** Options of `svc serve` as oclif flags. */
export function oclifFlags(names: readonly ServeFlagName[]): Interfaces.FlagInput {
  return Object.fromEntries(names.map(name => [name, oclifFlag(SERVE_FLAGS[name])]))
}

/** Options of `svc mcp serve` as oclif flags. */
export const mcpServeFlags = (): Interfaces.FlagInput => ({
  ...Object.fromEntries(Object.entries(MCP_SERVE_FLAGS).map(([name, flag]) => [name, oclifFlag(flag)])),
  stdio: Flags.boolean({ summary: MCP_SERVE_FLAGS.stdio.summary, exclusive: [...OF_PORTS] }),
})

function oclifFlag({ type, summary, value, char }: ServeFlag) {
  const common = { summary, ...(char ? { char } : {}), ...(value ? { helpValue: `<${value}>` } : {}) }
  if (type === 'switch') return Flags.boolean(common)
  return type === 'integer' ? Flags.integer(common) : Flags.string(common)
}

/** The parsed flags as options. */
export function optionsOf(flags: Readonly<Record<string, unknown>>, names: readonly string[] = serveFlagNames): ServeOptions {
  return Object.fromEntries(names.filter(name => flags[name] !== undefined).map(name => [name, flags[name]])) as ServeOptions
}

/** Flags of a command for the running server of this machine. */
const RUNNING_FLAGS = {
  port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
  json: Flags.boolean({ summary: 'Print one JSON object' }),
}

const MCP_FLAGS = mcpServeFlags()

class McpServe extends Command {
  static override summary = SUMMARIES['mcp:serve']
  static override description =
    'Serves only /mcp, /tools, /health and /metrics, without chat and the rest of the API. With --stdio, one process serves one client over its standard input and output, and ends when the client closes the input.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --port 9001 --tools read_file,search_text',
    '<%= config.bin %> <%= command.id %> --stdio',
  ]
  static override flags = MCP_FLAGS

  async run(): Promise<void> {
    const { flags } = await this.parse(McpServe)
    await runServe({ ...optionsOf(flags, Object.keys(MCP_FLAGS)), surface: 'mcp' })
  }
}

class Reload extends Command {
  static override summary = SUMMARIES.reload
  static override description =
    'Starts new workers from the code, plugins and configuration on disk, with the options of the running server. When the new workers are ready, they accept the new connections, and the old workers finish their requests. svc refuses no request. If the new workers cannot start, the command prints all problems, exits with 1, and the old workers keep serving. SIGHUP to the server does the same.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --port 9000 --json']
  static override flags = RUNNING_FLAGS

  async run(): Promise<void> {
    const { flags } = await this.parse(Reload)
    const { reload } = await import('./server-client.ts')
    process.exitCode = await reload(flags)
  }
}

class Drain extends Command {
  static override summary = SUMMARIES.drain
  static override description =
    'Stops a server behind a load balancer. `/health/ready` returns 503 at once, so that the balancer sends new requests elsewhere. The server keeps serving during the delay. Then it finishes its requests, returns its workflow runs to the queue and exits. The command waits for that.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --delay 10 --json']
  static override flags = {
    ...RUNNING_FLAGS,
    delay: Flags.integer({
      summary: 'Seconds to keep serving; default: server.shutdown_delay',
      helpValue: '<seconds>',
      min: 0,
      max: 600,
    }),
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(Drain)
    const { drain } = await import('./server-client.ts')
    await drain(flags)
  }
}

class Serve extends Command {
  static override summary = SUMMARIES.serve
  static override description =
    'Starts a supervisor and its workers. Writes the log to the standard output (JSON, or readable on a terminal), and the address and the loaded plugins to the standard error stream. Ctrl-C or SIGTERM drains the server, which exits with 0. A second signal ends it at once with 130. Exits with 1 when it cannot start.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --port 9000 --mode plan',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml --debug',
    '<%= config.bin %> <%= command.id %> --port 0 --json',
  ]
  static override flags = oclifFlags(serveFlagNames)

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve)
    await runServe(optionsOf(flags))
  }
}

/** svc's own commands by their ids, in the form that oclif loads. */
export const COMMANDS: Readonly<Record<string, Command.Class>> = {
  drain: Drain,
  'mcp:serve': McpServe,
  reload: Reload,
  serve: Serve,
}
