import { Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { Plugins } from './plugins.ts'

export class PluginsList extends Command {
  static override summary = SUMMARIES['plugins:list']
  static override description =
    'The tree of `svc plugins`, and of each plugin where it came from, where its code runs and how it is: running, restarting, quarantined, failed, disabled. Ends with 1 when one failed.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = Plugins.flags

  async run(): Promise<void> {
    const { flags } = await this.parse(PluginsList)
    const { showPlugins } = await import('../show-plugins.ts')
    process.exitCode = await showPlugins({ ...flags, origins: true })
  }
}
