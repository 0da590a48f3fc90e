import { BaseCommand, Flags } from '@svc/cli/command'

export class Plugins extends BaseCommand {
  static override summary = 'Show the plugins in start order, with times and contributions'
  static override description =
    'Asks the running server. If no server runs, or with --config, starts the configured plugins in this process, except those that listen, and stops them again. The first line names the source.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --port 9000',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml --json',
  ]
  static override flags = {
    port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
    config: Flags.string({
      char: 'c',
      summary: 'Use this configuration instead of a running server',
      helpValue: '<file>',
      exclusive: ['port'],
    }),
    json: Flags.boolean({ summary: 'Print one JSON object' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(Plugins)
    const { showPlugins } = await import('./report/list.ts')
    return showPlugins(flags)
  }
}
