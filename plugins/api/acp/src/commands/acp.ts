import { Flags, SvcCommand } from '@svc/cli/command'

export class Acp extends SvcCommand {
  static override summary = 'Serve a code editor over standard input and output (Agent Client Protocol)'
  static override description =
    'An editor starts the command, and uses a profile of svc as its agent. ' +
    'The command starts a host in its own process, also while a server runs, and shares conversations with it. ' +
    'It writes only the protocol to the standard output, and the log to the standard error stream. ' +
    'It ends when the editor closes its input, or with SIGTERM.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --profile coder --mode plan',
    '<%= config.bin %> <%= command.id %> --model anthropic/claude-sonnet-4-5',
  ]
  static override flags = {
    profile: Flags.string({ summary: 'Profile that answers', helpValue: '<name>' }),
    mode: Flags.string({ summary: 'Mode of new sessions', helpValue: '<mode>' }),
    model: Flags.string({ summary: 'Model or alias that answers, also as <provider>/<model>', helpValue: '<name>' }),
    debug: Flags.boolean({ summary: 'Log at level debug' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(Acp)
    const { serve } = await import('./serve.ts')
    return serve(this, flags)
  }
}
