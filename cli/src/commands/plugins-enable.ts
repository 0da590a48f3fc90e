import { SUMMARIES } from '../summaries.ts'
import { PluginsSwitch } from './plugins-switch.ts'

export class PluginsEnable extends PluginsSwitch {
  static override summary = SUMMARIES['plugins:enable']
  static override description = 'Brings back what `svc plugins disable` has switched off; its files are verified first.'
  protected readonly enabled = true
}
