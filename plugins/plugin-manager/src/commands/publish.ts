import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsPublish extends BaseCommand {
  static override summary = 'Lint, test, show what npm would send, and publish'
  static override description =
    'Lints the package, runs its kit, shows each file that npm would send, asks, and runs `npm publish`. Ends with 1 when something is wrong; then nothing was sent.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --dry-run',
    '<%= config.bin %> <%= command.id %> ./weather --yes',
  ]
  static override args = { folder: Args.string({ description: 'Folder of the plugin; default: this one', ignoreStdin: true }) }
  static override flags = {
    'dry-run': Flags.boolean({ summary: 'Send nothing' }),
    yes: Flags.boolean({ summary: 'Do not ask' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsPublish)
    const { publishPlugin } = await import('./author/publish.ts')
    const print = (line: string) => this.log(line)
    return publishPlugin({ folder: args.folder ?? '.', dryRun: flags['dry-run'], yes: flags.yes, print })
  }
}
