import { Args, Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { oclifFlags, optionsOf, serveFlagNames } from './shared-flags.ts'

const names = serveFlagNames.filter(name => name !== 'watch')

export class PluginsDev extends Command {
  static override summary = SUMMARIES['plugins:dev']
  static override description =
    'Is `svc serve --watch` with one plugin more: the one in the folder, from its source (what its "exports" name for "development"). Each saved file is taken up by new workers without a gap, and the time is told. Installed plugins are left out, whatever the svc home has.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --port 9000 --config ./svc.config.yaml',
  ]
  static override args = { folder: Args.string({ description: 'Folder of the plugin; default: this one', ignoreStdin: true }) }
  static override flags = oclifFlags(names)

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsDev)
    const { folderOfPlugin } = await import('../writing/folder.ts')
    const linked = folderOfPlugin(args.folder ?? '.')
    const { runServe } = await import('../serve-command.ts')
    await runServe({ ...optionsOf(flags), watch: true, linked })
  }
}
