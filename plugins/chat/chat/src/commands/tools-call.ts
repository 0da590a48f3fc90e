import { Args, Flags, secondsOf, SvcCommand } from '@svc/cli/command'

export class ToolsCall extends SvcCommand {
  static override summary = 'Run a tool'
  static override description =
    'Runs a tool of the configured plugins in this process, also while a server runs. The arguments are a JSON object, or key=value pairs (a value is text where the schema wants text, else JSON where it is JSON), or come from the standard input with --args -. They are checked against its schema first. Whoever writes the command is the one who wants it: a tool that asks before it acts in a chat does not ask here, and modes do not count. The result goes to the standard output. Ctrl-C aborts it. Ends with 1 when the tool fails or takes too long, with 2 when there is no such tool or the arguments do not fit (nothing has run then), with 130 when it was interrupted.'
  static override usage = `<%= command.id %> <NAME> ['{…}' | KEY=VALUE…] [--args -] [--timeout <seconds>] [-c <file>] [--json]`
  static override examples = [
    '<%= config.bin %> <%= command.id %> current_time',
    `<%= config.bin %> <%= command.id %> current_time '{"time_zone": "Asia/Tokyo"}'`,
    '<%= config.bin %> <%= command.id %> read_file path=README.md limit=20',
    'jq -n \'{path: "a.txt"}\' | <%= config.bin %> <%= command.id %> read_file --args - --json',
  ]
  static override strict = false
  static override args = {
    name: Args.string({ description: 'Name of the tool', required: true, ignoreStdin: true }),
    arguments: Args.string({ description: 'A JSON object, or key=value pairs', ignoreStdin: true }),
  }
  static override flags = {
    args: Flags.string({ summary: 'Arguments as JSON; - reads them from the standard input', helpValue: '<json>' }),
    timeout: Flags.custom<number>({
      summary: 'Seconds it may take; default: what the tool says, else 60',
      helpValue: '<seconds>',
      parse: async word => secondsOf(word),
    })(),
    config: Flags.string({ char: 'c', summary: 'Configuration file', helpValue: '<file>' }),
    debug: Flags.boolean({ summary: 'Log of the host on the standard error stream' }),
    json: Flags.boolean({ summary: 'The result as one JSON object' }),
  }

  async run(): Promise<number> {
    const { args, argv, flags } = await this.parse(ToolsCall)
    const { callTool } = await import('./tools/call.ts')
    const { timeout, ...rest } = flags
    const words = argv.slice(1).map(String)
    return callTool(this, {
      ...rest,
      name: args.name,
      words,
      ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }),
    })
  }
}
