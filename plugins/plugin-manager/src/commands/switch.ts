import { BaseCommand } from '@svc/cli/command'
import { namesArg, unaskedFlags } from './flags.ts'

/** A command that switches installed plugins on or off. */
export abstract class PluginsSwitch extends BaseCommand {
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = unaskedFlags

  protected abstract readonly enabled: boolean

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsSwitch)
    const { switchPlugins } = await import('./change/switch.ts')
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(switchPlugins({ names: args.names, enabled: this.enabled, ...flags }))
  }
}
