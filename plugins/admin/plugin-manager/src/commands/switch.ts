import { BaseCommand } from '@svc/cli/command'
import { namesArg, unaskedFlags } from './flags.ts'

/** Base class of `enable` and `disable`. */
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
  static override summary = 'Disable installed plugins'
  static override description =
    'Keeps the files and the accepted permissions. To disable a configured plugin, set enabled: false in the configuration: plugins: [{ use: …, enabled: false }].'
  protected readonly enabled = false
}

export class PluginsEnable extends PluginsSwitch {
  static override summary = 'Enable installed plugins again'
  static override description = 'Enables plugins that `svc plugins disable` disabled, after a verification of their files.'
  protected readonly enabled = true
}
