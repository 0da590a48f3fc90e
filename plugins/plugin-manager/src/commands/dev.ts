import { Args, BaseCommand } from '@svc/cli/command'
import { oclifFlags, optionsOf, runServe, serveFlagNames } from '@svc/cli/program'

const names = serveFlagNames.filter(name => name !== 'watch')

export class PluginsDev extends BaseCommand {
  static override summary = 'Serve with a plugin that you write, and reload when a file of it is saved'
  static override description =
    'Is `svc serve --watch` with one plugin more: the one in the folder, from its source (what its "exports" name for "development"). Each saved file is taken up by new workers without a gap, and the time is told. Installed plugins are left out, whatever the svc home has.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --port 9000 --config ./svc.config.yaml',
  ]
  static override args = { folder: Args.string({ description: 'Folder of the plugin; default: this one', ignoreStdin: true }) }
  static override flags = oclifFlags(names)

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsDev)
    const { folderOfPlugin } = await import('./author/folder.ts')
    const linked = folderOfPlugin(args.folder ?? '.')
    return runServe({ ...optionsOf(flags), watch: true, linked })
  }
}
