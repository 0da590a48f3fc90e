import { Flags, SERVER_FLAGS, SvcCommand, Args, secondsOf } from '@svc/cli/command'

export class ProvidersList extends SvcCommand {
  static override summary = 'List the providers with their models, features and health'
  static override description =
    'Lists the providers of the running server of this svc home, or of the server of --url or --port. If no server runs, the command starts the configured plugins in its own process. Exits with 0 also if a provider is unhealthy; use `svc providers test` to check them. The command sends SVC_API_KEY (an API key or a token) if it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --url https://svc.example.com --json',
  ]
  static override flags = { ...SERVER_FLAGS, json: Flags.boolean({ summary: 'Print a JSON object with all models' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(ProvidersList)
    const { listProviders } = await import('./providers/list.ts')
    return listProviders(this, flags)
  }
}

export class ProvidersTest extends SvcCommand {
  static override summary = 'Test all providers or one provider'
  static override description =
    'Probes each provider. Probes are free. A running server returns its own probe, which is at most ten seconds old; otherwise this process probes. With --chat, the command also sends a short message to each provider and prints the time to the first token and to the end of the reply. THIS IS A BILLED CALL of a few tokens. Exits with 1 if a provider fails, and with 2 if the named provider does not exist.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> openai --local',
    '<%= config.bin %> <%= command.id %> openai --chat --model gpt-5-mini --json',
  ]
  static override args = { name: Args.string({ description: 'Provider to test', ignoreStdin: true }) }
  static override flags = {
    chat: Flags.boolean({ summary: 'Also send a short message; the provider bills it' }),
    model: Flags.string({
      summary: 'Model for the message; default: the first model of the provider',
      helpValue: '<name>',
      dependsOn: ['chat'],
    }),
    timeout: Flags.custom<number>({
      summary: 'Time limit of a probe or reply in seconds; default 30',
      helpValue: '<seconds>',
      parse: async word => secondsOf(word),
    })(),
    ...SERVER_FLAGS,
    json: Flags.boolean({ summary: 'Print a JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ProvidersTest)
    const { testProviders } = await import('./providers/test.ts')
    const { timeout = 30, ...rest } = flags
    return testProviders(this, { ...rest, name: args.name, limitMs: timeout * 1000 })
  }
}
