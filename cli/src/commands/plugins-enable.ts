import { Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { namesArg, placeFlags } from './plugins-flags.ts'

export class PluginsEnable extends Command {
  static override summary = SUMMARIES['plugins:enable']
  static override description = 'Brings back what `svc plugins disable` has switched off; its files are verified first.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = placeFlags

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsEnable)
    const { switchPlugins } = await import('../plugins/switch.ts')
    process.exitCode = await switchPlugins({ names: args.names, enabled: true, ...flags })
  }
}
