import { Args, Flags, secondsOf, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class ProvidersTest extends SvcCommand {
  static override summary = 'Try each provider, or one'
  static override description =
    'Probes each provider, which costs nothing: a server that runs tells what its own probe found within the last ten seconds, else this process probes. With --chat it then says a few words to each and tells the times to the first token and to the end of the reply. THAT IS A BILLED CALL of a handful of tokens a provider. Ends with 1 when one fails, with 2 when there is no such provider.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> openai --local',
    '<%= config.bin %> <%= command.id %> openai --chat --model gpt-5-mini --json',
  ]
  static override args = { name: Args.string({ description: 'Only this provider', ignoreStdin: true }) }
  static override flags = {
    chat: Flags.boolean({ summary: 'Say a few words too: billed' }),
    model: Flags.string({ summary: 'Model to say them to; default: its first', helpValue: '<name>', dependsOn: ['chat'] }),
    timeout: Flags.custom<number>({
      summary: 'Seconds a probe or a reply may take; default 30',
      helpValue: '<seconds>',
      parse: async word => secondsOf(word),
    })(),
    ...SERVER_FLAGS,
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ProvidersTest)
    const { testProviders } = await import('./providers/test.ts')
    const { timeout = 30, ...rest } = flags
    return testProviders(this, { ...rest, name: args.name, limitMs: timeout * 1000 })
  }
}
