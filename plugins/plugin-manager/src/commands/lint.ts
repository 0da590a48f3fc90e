import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsLint extends BaseCommand {
  static override summary = 'Look for what would trip somebody who installs the plugin'
  static override description =
    'Looks at the package and runs nothing of it: manifest, files, exports, names that are taken, the range of @svc/core, install scripts; warns of variables, hosts and files in the source that the manifest does not declare. Ends with 1 when there is an error.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> ./weather --json']
  static override args = { folder: Args.string({ description: 'Folder of the plugin; default: this one', ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsLint)
    const { findingsText, hasErrors, lintPlugin } = await import('./author/lint.ts')
    const findings = await lintPlugin(args.folder ?? '.')
    this.log(flags.json ? JSON.stringify({ ok: !hasErrors(findings), findings }, null, 2) : findingsText(findings))
    return hasErrors(findings) ? 1 : 0
  }
}
