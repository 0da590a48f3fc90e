import { Command } from '@oclif/core'
import { namesArg, unaskedFlags } from './plugins-flags.ts'

/** A command that switches installed plugins on or off. */
export abstract class PluginsSwitch extends Command {
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = unaskedFlags

  protected abstract readonly enabled: boolean

  async run(): Promise<void> {
    const { args, flags } = await this.parse(PluginsSwitch)
    const { switchPlugins } = await import('../plugins/switch.ts')
    const { withCompletion } = await import('../completion.ts')
    process.exitCode = await withCompletion(switchPlugins({ names: args.names, enabled: this.enabled, ...flags }))
  }
}
