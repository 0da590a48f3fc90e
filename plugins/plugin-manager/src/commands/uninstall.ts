import { BaseCommand } from '@svc/cli/command'
import { namesArg, unaskedFlags } from './flags.ts'

export class PluginsUninstall extends BaseCommand {
  static override summary = 'Take installed plugins out'
  static override description =
    'A server that runs goes on without them and loses no request; where it cannot (another plugin needs one), everything stays as it is. Their files go once no worker reads them any more. A linked folder itself is not touched.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = unaskedFlags

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsUninstall)
    const { uninstallPlugins } = await import('./change/uninstall.ts')
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(uninstallPlugins({ names: args.names, ...flags }))
  }
}
