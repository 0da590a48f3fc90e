import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsLint extends BaseCommand {
  static override summary = 'Check a plugin for packaging problems'
  static override description =
    'Checks the manifest, the files, the exports, names that are already taken, the range of @svc/core and install scripts, and runs no code of the plugin. Warns about variables, hosts and files in the source that the manifest does not declare. Exits with 1 when there is an error.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> ./weather --json']
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsLint)
    const { findingsText, hasErrors } = await import('./author/finding.ts')
    const { lintPlugin } = await import('./author/lint.ts')
    const findings = await lintPlugin(args.folder ?? '.')
    this.log(flags.json ? JSON.stringify({ ok: !hasErrors(findings), findings }, null, 2) : findingsText(findings))
    return hasErrors(findings) ? 1 : 0
  }
}
