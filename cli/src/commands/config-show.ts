import { Args, Command, Flags } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { oclifFlags, optionsOf, settingFlagNames } from './shared-flags.ts'

export class ConfigShow extends Command {
  static override summary = SUMMARIES['config:show']
  static override description =
    'Shows what `svc serve` with the same options would run with: each key, its value, and the file and line, variable or flag that set it. Secrets are masked. Ends with 1 when the configuration has faults; they go to the standard error stream.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> server',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml --json',
    '<%= config.bin %> <%= command.id %> server.port --port 9000',
  ]
  static override args = { key: Args.string({ description: 'Only this key and what is below it', ignoreStdin: true }) }
  static override flags = { ...oclifFlags(settingFlagNames), json: Flags.boolean({ summary: 'One JSON object' }) }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConfigShow)
    const { showConfig } = await import('../show-config.ts')
    process.exitCode = await showConfig(optionsOf(flags), { key: args.key, json: flags.json })
  }
}
