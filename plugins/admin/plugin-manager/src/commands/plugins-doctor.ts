import { BaseCommand, Flags } from '@svc/cli/command'

export class PluginsDoctor extends BaseCommand {
  static override summary = 'Check the installed plugins: lock, files, sandbox, npm'
  static override description =
    'Checks the lock file, the files of each installed plugin, the versions of svc that they need, leftovers of earlier changes, the sandbox and npm. If these checks pass, starts a host once as `svc serve` would. Asks running servers for plugins that failed there. Suggests a fix for each problem. Exits with 1 when a check fails. `svc doctor` checks everything else.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(PluginsDoctor)
    const { diagnosePlugins } = await import('./report/doctor.ts')
    return diagnosePlugins(flags)
  }
}
