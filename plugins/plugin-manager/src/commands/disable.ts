import { PluginsSwitch } from './switch.ts'

export class PluginsDisable extends PluginsSwitch {
  static override summary = 'Switch installed plugins off'
  static override description =
    'Its files stay, and what was accepted stays accepted. A plugin of the configuration is switched off there: plugins: [{ use: …, enabled: false }].'
  protected readonly enabled = false
}
