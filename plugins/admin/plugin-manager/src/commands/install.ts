import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { changeFlags, offlineFlag, placeFlags } from './flags.ts'

export class PluginsInstall extends BaseCommand {
  static override summary = 'Install plugins from a package, folder, tarball or bundle'
  static override description =
    'Installs packages from the registry, folders, tarballs, or one bundle of `svc plugins pack`, which replaces everything that is installed. Shows the permissions of each plugin and asks you before any of its code runs. Install scripts run only with --allow-scripts. A running server reloads without dropping requests. If the reload fails, svc restores the former plugins and reports the reason. Exits with 0 when the change is in effect, with 1 when it is not, and with 130 when you interrupt it; then nothing has changed.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather@^1.2 --yes',
    '<%= config.bin %> <%= command.id %> ./weather --dry-run',
    '<%= config.bin %> <%= command.id %> ./plugins.tgz --offline',
  ]
  static override args = {
    what: Args.string({
      description: 'Name, name@range, folder, tarball or bundle',
      required: true,
      multiple: true,
      ignoreStdin: true,
    }),
  }
  static override flags = {
    ...changeFlags,
    ...offlineFlag,
    'allow-scripts': Flags.boolean({ summary: 'Run the install scripts of these plugins, without isolation' }),
    ...placeFlags,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsInstall)
    const { installPlugins } = await import('./change/install.ts')
    const { 'dry-run': dryRun, 'allow-scripts': scripts, ...rest } = flags
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(installPlugins({ specs: args.what, dryRun, scripts, ...rest }))
  }
}
