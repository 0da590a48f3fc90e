import { Command } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { oclifFlags, optionsOf, serveFlagNames } from './shared-flags.ts'

export class Serve extends Command {
  static override summary = SUMMARIES.serve
  static override description =
    'Starts a supervisor and one worker. Log lines go to the standard output (JSON, or readable on a terminal), where it listens and what it loaded to the standard error stream. Ctrl-C or SIGTERM drains and ends with 0; a second one ends at once with 130. Ends with 1 when it cannot start.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --port 9000 --mode plan',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml --debug',
    '<%= config.bin %> <%= command.id %> --port 0 --json',
  ]
  static override flags = oclifFlags(serveFlagNames)

  async run(): Promise<void> {
    const { flags } = await this.parse(Serve)
    const { runServe } = await import('../serve-command.ts')
    await runServe(optionsOf(flags))
  }
}
