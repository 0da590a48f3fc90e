import { Command, Flags } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { secondsOf } from '../command/flags.ts'

export class PluginsTop extends Command {
  static override summary = SUMMARIES['plugins:top']
  static override description =
    'Asks the server that runs from this svc home, or the one that --url or --port names, for its metrics: of each plugin the calls of its taps and of what it adds, how many failed, the time they took, and of one in a process of its own its memory and processor time, how often it was brought up again, and what it was refused. All workers together. On a terminal it looks again and again, with what happens a second, until Ctrl-C; elsewhere, with --once or --json, once. Where the terminal is too narrow names are shortened, then TIME, /S, CPU, MEMORY, BUSY and CALLS left out, in this order; --json has all. SVC_API_KEY (an API key or a token of `svc tokens create`) is sent where it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --once --sort memory',
    '<%= config.bin %> <%= command.id %> --json',
  ]
  static override flags = {
    sort: Flags.option({
      summary: 'What stands first',
      options: ['time', 'calls', 'errors', 'memory', 'cpu'] as const,
      default: 'time',
    })(),
    once: Flags.boolean({ summary: 'Look once' }),
    interval: Flags.custom<number>({
      summary: 'Seconds between two looks',
      helpValue: '<seconds>',
      parse: async word => secondsOf(word),
    })(),
    url: Flags.string({ summary: 'Address of the server', helpValue: '<url>', exclusive: ['port'] }),
    port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(PluginsTop)
    const { top } = await import('../top.ts')
    process.exitCode = await top({ ...flags, interval: flags.interval ?? 2 })
  }
}
