import { Command, Flags } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { oclifFlags, optionsOf, settingFlagNames } from './shared-flags.ts'

export class ConfigCheck extends Command {
  static override summary = SUMMARIES['config:check']
  static override description =
    'Reads the configuration and the plugins as `svc serve` with the same options would, but starts nothing. Reports all faults at once, with file and line. Ends with 0 when there is none, else with 1.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml',
    '<%= config.bin %> <%= command.id %> --json',
  ]
  static override flags = { ...oclifFlags(settingFlagNames), json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigCheck)
    const { checkConfig } = await import('../check-config.ts')
    process.exitCode = await checkConfig(optionsOf(flags), flags.json)
  }
}
