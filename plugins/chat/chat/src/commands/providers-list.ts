import { Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

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
