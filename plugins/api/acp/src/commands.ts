import { Flags, SvcCommand, takeOutput, untilSignal } from '@svc/cli/command'
import { type ConfigTree, svcError, systemContext } from '@svc/core'
import { type CommandContext, Pipes } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'

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
    return serve(this, flags)
  }
}

/** The flags of `svc acp`. */
interface AcpFlags {
  readonly profile?: string | undefined
  readonly mode?: string | undefined
  readonly model?: string | undefined
  readonly debug: boolean
}

/** Connects the editor at standard input and output to the pipe of the plugin. Resolves with the exit code. */
async function serve(command: CommandContext, { debug, ...selected }: AcpFlags): Promise<number> {
  const output = takeOutput()
  using ending = untilSignal()
  const settings = { acp: definedOf(selected), ...(await editorDefaults(command)) }
  const host = await command.host({ settings, debug, log: true, surfaces: ['acp'] })
  const pipe = host.slot(Pipes).get('acp')
  if (!pipe) throw pipeMissing()
  await pipe.serve(process.stdin, output, systemContext(ending.signal, 'acp'))
  process.stdin.destroy()
  return 0
}

/** A person at an editor needs longer to answer than a script, and turns of a coding agent have many steps. */
const DEFAULTS = { ask_timeout_ms: 600_000, max_rounds: 64 }

/** Settings of chat that the configuration does not have. */
async function editorDefaults(command: CommandContext): Promise<ConfigTree> {
  const chat: ConfigTree = {}
  for (const [key, value] of Object.entries(DEFAULTS)) if ((await command.setting('chat', key)) === undefined) chat[key] = value
  return { chat }
}

const pipeMissing = () =>
  svcError('PIPE_MISSING', 'no loaded plugin can serve an editor', {
    hint: 'Remove from "plugins" the entry that disables "@svc/plugin-acp"',
  })

export const COMMANDS = { acp: Acp }
