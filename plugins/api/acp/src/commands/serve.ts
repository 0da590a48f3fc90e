import { takeOutput, untilSignal } from '@svc/cli/command'
import { type ConfigTree, svcError, systemContext } from '@svc/core'
import { type CommandContext, Pipes } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'

/** The flags of `svc acp`. */
interface AcpFlags {
  readonly profile?: string | undefined
  readonly mode?: string | undefined
  readonly model?: string | undefined
  readonly debug: boolean
}

/** Connects the editor at standard input and output to the pipe of the plugin. Resolves with the exit code. */
export async function serve(command: CommandContext, { debug, ...selected }: AcpFlags): Promise<number> {
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
