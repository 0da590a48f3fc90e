import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsInfo extends BaseCommand {
  static override summary = 'Show an installed plugin: origin, permissions, health'
  static override description =
    'What the lock has of it, what its package says, whether its files are those that were installed, and how it stands in the server that runs. Runs nothing of it.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { name: Args.string({ description: 'Name of an installed plugin', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsInfo)
    const { showInfo } = await import('./report/info.ts')
    return showInfo({ name: args.name, ...flags })
  }
}
