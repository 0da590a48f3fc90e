import { Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { oclifFlags, optionsOf, settingFlagNames } from './shared-flags.ts'

export class ConfigSchema extends Command {
  static override summary = SUMMARIES['config:schema']
  static override description =
    'Writes a JSON Schema (draft 07) of all that the loaded plugins understand, yours and those of others included, to the standard output. An editor checks a file by it: `# yaml-language-server: $schema=./svc.schema.json` as first line of svc.config.yaml, or "$schema" in svc.config.json. Ends with 1 where a plugin cannot be loaded.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> > svc.schema.json',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml > staging.schema.json',
  ]
  static override flags = oclifFlags(settingFlagNames)

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigSchema)
    const { writeConfigSchema } = await import('../config-schema.ts')
    process.exitCode = await writeConfigSchema(optionsOf(flags))
  }
}
