import { Flags, SERVER_FLAGS, SvcCommand, Args, secondsOf } from '@svc/cli/command'

export class ToolsList extends SvcCommand {
  static override summary = 'List the tools'
  static override description =
    'Lists name, category, effects and a short description of each tool. The tools come from the running server of this svc home, or from the server of --url or --port. If no server runs, the command starts the configured plugins in its own process. A server does not report effects; --local does. Exits with 2 if the category does not exist. The command sends SVC_API_KEY (an API key or a token) if it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --category files --local',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
  ]
  static override flags = {
    category: Flags.string({ summary: 'List only the tools of this category', helpValue: '<name>' }),
    ...SERVER_FLAGS,
    json: Flags.boolean({ summary: 'Print a JSON object' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(ToolsList)
    const { listTools } = await import('./tools/list.ts')
    return listTools(this, flags)
  }
}

export class ToolsShow extends SvcCommand {
  static override summary = 'Show the description and parameters of a tool'
  static override description =
    'Shows description, parameters, category, effects and time limit of a tool, and whether it requires approval. With --json, also the schema of its arguments. A server without the management API reports only description, parameters and category; --local shows the rest. Exits with 2 if the tool does not exist.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> read_file',
    '<%= config.bin %> <%= command.id %> read_file --local --json',
  ]
  static override args = { name: Args.string({ description: 'Name of the tool', required: true, ignoreStdin: true }) }
  static override flags = { ...SERVER_FLAGS, json: Flags.boolean({ summary: 'Print a JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ToolsShow)
    const { showTool } = await import('./tools/list.ts')
    return showTool(this, { ...flags, name: args.name })
  }
}

export class ToolsCall extends SvcCommand {
  static override summary = 'Run a tool'
  static override description =
    'Runs a tool of the configured plugins in this process, even if a server runs. The arguments are a JSON object or key=value pairs; --args - reads a JSON object from the standard input. A value is a text if the schema requires a text; otherwise it is parsed as JSON if possible. The command checks the arguments against the schema first. It runs the tool without asking for approval and ignores modes. The result goes to the standard output. Ctrl-C aborts the tool. Exits with 1 if the tool fails or exceeds its time limit, with 2 for an unknown tool or invalid arguments (the tool does not run), and with 130 after an interrupt.'
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
    args: Flags.string({ summary: 'Arguments as JSON; - reads the standard input', helpValue: '<json>' }),
    timeout: Flags.custom<number>({
      summary: 'Time limit in seconds; default: the limit of the tool, else 60',
      helpValue: '<seconds>',
      parse: async word => secondsOf(word),
    })(),
    config: Flags.string({ char: 'c', summary: 'Configuration file', helpValue: '<file>' }),
    debug: Flags.boolean({ summary: 'Write the log of the host to the standard error stream' }),
    json: Flags.boolean({ summary: 'Print the result as a JSON object' }),
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
