import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsPack extends BaseCommand {
  static override summary = 'Write all installed plugins into one file'
  static override description =
    'Writes the installed plugins into one file. `svc plugins install <file>` restores them on another machine without a network. Two bundles of the same plugins are identical byte for byte.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> plugins.tgz',
    '<%= config.bin %> <%= command.id %> plugins.tgz --json',
  ]
  static override args = { file: Args.string({ description: 'File to write', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsPack)
    const { packPlugins } = await import('./change/pack.ts')
    return packPlugins({ file: args.file, ...flags })
  }
}
