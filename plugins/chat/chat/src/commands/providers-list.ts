import { Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class ProvidersList extends SvcCommand {
  static override summary = 'List the providers: their models, what they can do, how they are'
  static override description =
    'Each provider with its models, what it can do and whether it answers: of the server that runs from this svc home or that --url or --port names; where none runs, of the configured plugins, started in this process. Ends with 0 also where one is unhealthy: `svc providers test` judges. SVC_API_KEY (an API key or a token) is sent where it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --url https://svc.example.com --json',
  ]
  static override flags = { ...SERVER_FLAGS, json: Flags.boolean({ summary: 'One JSON object, with all models' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(ProvidersList)
    const { listProviders } = await import('./providers/list.ts')
    return listProviders(this, flags)
  }
}
