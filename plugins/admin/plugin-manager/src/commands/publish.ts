import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsPublish extends BaseCommand {
  static override summary = 'Lint, test and publish a plugin'
  static override description =
    'Lints the package, runs its test kit, lists the files that npm would send, asks you, and runs `npm publish`. Exits with 1 and publishes nothing when a step fails.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --dry-run',
    '<%= config.bin %> <%= command.id %> ./weather --yes',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = {
    'dry-run': Flags.boolean({ summary: 'Show the files without publishing' }),
    yes: Flags.boolean({ summary: 'Publish without a question' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsPublish)
    const { publishPlugin } = await import('./author/publish.ts')
    const print = (line: string) => this.log(line)
    return publishPlugin({ folder: args.folder ?? '.', dryRun: flags['dry-run'], yes: flags.yes, print })
  }
}
