import { Command, Flags } from '@oclif/core'
import { SUMMARIES } from '../summaries.ts'

export class Reload extends Command {
  static override summary = SUMMARIES.reload
  static override description =
    'Brings up the next workers from the code, plugins and configuration that are on the disk now, with the options that the server was started with. When they are ready they take the new connections, and the old ones end what they began. No request is refused. Ends with 1 and all faults when the new ones cannot start: then the old ones serve on. SIGHUP to the server does the same.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --port 9000 --json']
  static override flags = {
    port: Flags.integer({ char: 'p', summary: 'The server on this port', helpValue: '<int>' }),
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(Reload)
    const { reload } = await import('../reload.ts')
    process.exitCode = await reload(flags)
  }
}
