import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { oclifFlags, optionsOf, settingFlagNames } from '@svc/cli/program'

// The commands that show and check the configuration.

const json = Flags.boolean({ summary: 'Print one JSON object' })

export class ConfigCheck extends BaseCommand {
  static override summary = 'Check the configuration and report all problems'
  static override description =
    'Reads the configuration and the plugins as `svc serve` and `svc mcp serve` with the same options would, but starts nothing. Reports all problems together, with file and line, and lists what it did not check. With --start, starts the plugins once in another process, without listening. Exits with 1 when there is a problem.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml',
    '<%= config.bin %> <%= command.id %> --start',
    '<%= config.bin %> <%= command.id %> --json',
  ]
  static override flags = {
    ...oclifFlags(settingFlagNames),
    start: Flags.boolean({ summary: 'Also start the plugins once, without listening' }),
    json,
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(ConfigCheck)
    const { checkConfig } = await import('./config/check.ts')
    const { start, json: asJson, ...rest } = flags
    return checkConfig(optionsOf(rest), { start, json: asJson })
  }
}

export class ConfigSchema extends BaseCommand {
  static override summary = 'Write a JSON Schema of the configuration, for editors'
  static override description =
    'Writes a JSON Schema (draft 07) of everything that the loaded plugins accept to the standard output, including plugins that do not come with svc. To make an editor use it, begin svc.config.yaml with `# yaml-language-server: $schema=./svc.schema.json`, or set "$schema" in svc.config.json. Exits with 1 when a plugin cannot be loaded.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> > svc.schema.json',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml > staging.schema.json',
  ]
  static override flags = oclifFlags(settingFlagNames)

  async run(): Promise<number> {
    const { flags } = await this.parse(ConfigSchema)
    const { writeConfigSchema } = await import('./config/show.ts')
    return writeConfigSchema(optionsOf(flags))
  }
}

export class ConfigShow extends BaseCommand {
  static override summary = 'Show each value of the configuration with its source'
  static override description =
    'Shows the configuration that `svc serve` with the same options would use: each key, its value, and the file and line, variable or flag that set it. Masks secrets. When the configuration has problems, prints them to the standard error stream and exits with 1.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> server',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml --json',
    '<%= config.bin %> <%= command.id %> server.port --port 9000',
  ]
  static override args = { key: Args.string({ description: 'Show only this key and the keys below it', ignoreStdin: true }) }
  static override flags = { ...oclifFlags(settingFlagNames), json }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ConfigShow)
    const { showConfig } = await import('./config/show.ts')
    return showConfig(optionsOf(flags), { key: args.key, json: flags.json })
  }
}
