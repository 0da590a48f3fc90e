import { Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { namesArg, unaskedFlags } from './plugins-flags.ts'

export class PluginsUninstall extends Command {
  static override summary = SUMMARIES['plugins:uninstall']
  static override description =
    'A server that runs goes on without them and loses no request; where it cannot (another plugin needs one), everything stays as it is. Their files go once no worker reads them any more. A linked folder itself is not touched.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = unaskedFlags

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsUninstall)
    const { uninstallPlugins } = await import('../plugins/uninstall.ts')
    const { withCompletion } = await import('../completion.ts')
    process.exitCode = await withCompletion(uninstallPlugins({ names: args.names, ...flags }))
  }
}
