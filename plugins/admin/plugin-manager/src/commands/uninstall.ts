import { BaseCommand } from '@svc/cli/command'
import { namesArg, unaskedFlags } from './flags.ts'

export class PluginsUninstall extends BaseCommand {
  static override summary = 'Uninstall plugins'
  static override description =
    'A running server reloads without the plugins and drops no request. If the reload fails, for example because another plugin needs one of them, nothing changes. svc deletes the files when no worker uses them. A linked folder stays as it is.'
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
