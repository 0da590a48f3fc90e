import { BaseCommand } from '@svc/cli/command'
import { namesArg, unaskedFlags } from './flags.ts'

/** A command that switches installed plugins on or off. */
abstract class PluginsSwitch extends BaseCommand {
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

export class PluginsDisable extends PluginsSwitch {
  static override summary = 'Switch installed plugins off'
  static override description =
    'Its files stay, and what was accepted stays accepted. A plugin of the configuration is switched off there: plugins: [{ use: …, enabled: false }].'
  protected readonly enabled = false
}

export class PluginsEnable extends PluginsSwitch {
  static override summary = 'Switch installed plugins on again'
  static override description = 'Brings back what `svc plugins disable` has switched off; its files are verified first.'
  protected readonly enabled = true
}
