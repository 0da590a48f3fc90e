import { BaseCommand, Flags } from '@svc/cli/command'
import { oclifFlags, optionsOf, settingFlagNames } from '@svc/cli/program'

export class Doctor extends BaseCommand {
  static override summary = 'Check what svc needs: home, configuration, store, providers, port'
  static override description =
    'Looks at Node, the svc home, the configuration, the profiles, the store, the providers, authentication, the port, the certificate and the sandbox as `svc serve` with the same options would find them, and says of each fault how to fix it. Starts the configured plugins in this process, but not those that would listen; a server may run meanwhile. Ends with 1 when something fails, with 0 when it only warns.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
  ]
  static override flags = { ...oclifFlags(settingFlagNames), json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(Doctor)
    const { doctor } = await import('./doctor/doctor.ts')
    return doctor(optionsOf(flags), flags.json)
  }
}
