import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { changeFlags, offlineFlag, placeFlags } from './flags.ts'

export class PluginsInstall extends BaseCommand {
  static override summary = 'Install plugins: a package, folder, tarball or bundle'
  static override description =
    'Takes packages of the registry, folders, tarballs, or one bundle of `svc plugins pack`, which takes the place of all that is installed. Shows what each asks for and asks you; nothing of it has run by then, and install scripts never run unless allowed. A server that runs takes it up without losing a request; where it cannot, everything is as it was before, and the reason is told. Ends with 0 when it is in force, with 1 when it is not, with 130 when interrupted: then nothing was changed.'
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
    'allow-scripts': Flags.boolean({ summary: 'Run their own install scripts, which nothing holds' }),
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
