import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsInfo extends BaseCommand {
  static override summary = 'Show an installed plugin: origin, permissions, health'
  static override description =
    'Shows the lock entry, the package, whether the files match the installed ones, and the state in the running server. Runs no code of the plugin.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { name: Args.string({ description: 'Name of an installed plugin', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsInfo)
    const { showInfo } = await import('./report/info.ts')
    return showInfo({ name: args.name, ...flags })
  }
}
