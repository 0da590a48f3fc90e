import { Args, BaseCommand } from '@svc/cli/command'
import { oclifFlags, optionsOf, runServe, serveFlagNames } from '@svc/cli/program'

const names = serveFlagNames.filter(name => name !== 'watch')

export class PluginsDev extends BaseCommand {
  static override summary = 'Serve with the plugin in a folder, and reload when you save a file'
  static override description =
    'Runs `svc serve --watch` with the plugin in the folder, loaded from its source (the condition "development" of its "exports"). svc reloads after each saved file without dropping requests, and prints how long the reload took. Installed plugins are not loaded.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --port 9000 --config ./svc.config.yaml',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = oclifFlags(names)

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsDev)
    const { folderOfPlugin } = await import('./author/folder.ts')
    const linked = folderOfPlugin(args.folder ?? '.')
    return runServe({ ...optionsOf(flags), watch: true, linked })
  }
}
