import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsPack extends BaseCommand {
  static override summary = 'Write all installed plugins into one file'
  static override description =
    'Writes all that is installed into one file. `svc plugins install <file>` restores it on a machine without network, byte for byte. Two bundles of one set have equal bytes.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> plugins.tgz',
    '<%= config.bin %> <%= command.id %> plugins.tgz --json',
  ]
  static override args = { file: Args.string({ description: 'File to write', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsPack)
    const { packPlugins } = await import('./change/pack.ts')
    return packPlugins({ file: args.file, ...flags })
  }
}
