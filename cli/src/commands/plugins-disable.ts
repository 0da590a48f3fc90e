import { Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { namesArg, placeFlags } from './plugins-flags.ts'

export class PluginsDisable extends Command {
  static override summary = SUMMARIES['plugins:disable']
  static override description =
    'Its files stay, and what was accepted stays accepted. A plugin of the configuration is switched off there: plugins: [{ use: …, enabled: false }].'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = placeFlags

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsDisable)
    const { switchPlugins } = await import('../plugins/switch.ts')
    process.exitCode = await switchPlugins({ names: args.names, enabled: false, ...flags })
  }
}
