import { Command, Flags } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'
import { secondsOf } from '../command/flags.ts'

export class Status extends Command {
  static override summary = SUMMARIES.status
  static override description =
    'Asks the server that runs from this svc home, or the one that --url or --port names: how it is, its workers, requests and their times, providers, plugins, store and cache. The time to answer is estimated from the histogram of /metrics; what looks at the server (/health, /metrics, /api/v1/status) is left out of it. With --watch it looks again and again: on a terminal one picture with what happens a second, elsewhere a line a look, until Ctrl-C. With --live nothing is asked but /health/live, without a credential: for the health check of a container. Ends with 1 when the server cannot be reached, is unhealthy or does not tell its figures. SVC_API_KEY (an API key or a token of `svc tokens create`) is sent where it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --watch',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
    '<%= config.bin %> <%= command.id %> --url https://svc.example.com',
  ]
  static override flags = {
    watch: Flags.boolean({ char: 'w', summary: 'Look again and again' }),
    interval: Flags.custom<number>({
      summary: 'Seconds between two looks',
      helpValue: '<seconds>',
      dependsOn: ['watch'],
      parse: async word => secondsOf(word),
    })(),
    url: Flags.string({ summary: 'Address of the server', helpValue: '<url>', exclusive: ['port'] }),
    port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
    live: Flags.boolean({ summary: 'Ask nothing but whether it answers: ends with 0 or 1', exclusive: ['watch', 'json'] }),
    json: Flags.boolean({ summary: 'One JSON object, with --watch one a line' }),
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(Status)
    const { status } = await import('../status.ts')
    process.exitCode = await status({ ...flags, interval: flags.interval ?? 2 })
  }
}
