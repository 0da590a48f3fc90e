import { BaseCommand, Flags } from '@svc/cli/command'

export class Plugins extends BaseCommand {
  static override summary = 'Install, look after and write plugins'
  static override description =
    'Asks the running server. Where none runs (or with --config), starts the configured plugins in this process, but not those that would listen, shows them and closes them again. The first line says which.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --port 9000',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml --json',
  ]
  static override flags = {
    port: Flags.integer({ char: 'p', summary: 'Of the server on this port', helpValue: '<int>' }),
    config: Flags.string({
      char: 'c',
      summary: 'Of this configuration, not of a server',
      helpValue: '<file>',
      exclusive: ['port'],
    }),
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(Plugins)
    const { showPlugins } = await import('./report/list.ts')
    return showPlugins(flags)
  }
}
