import { BaseCommand, Flags } from '@svc/cli/command'

export class PluginsDoctor extends BaseCommand {
  static override summary = 'Check the installed plugins: lock, files, sandbox, npm'
  static override description =
    'Looks at the lock, the files of each installed plugin, what they need of svc, what earlier changes left behind, the sandbox and npm; where none of these fails, starts a host once as `svc serve` would; asks the servers that run which plugins are out there; says of each fault how it is fixed. Ends with 1 when something fails. `svc doctor` looks at all the rest.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(PluginsDoctor)
    const { diagnosePlugins } = await import('./report/doctor.ts')
    return diagnosePlugins(flags)
  }
}
