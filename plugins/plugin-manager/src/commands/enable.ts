import { PluginsSwitch } from './switch.ts'

export class PluginsEnable extends PluginsSwitch {
  static override summary = 'Switch installed plugins on again'
  static override description = 'Brings back what `svc plugins disable` has switched off; its files are verified first.'
  protected readonly enabled = true
}
