import { fileURLToPath } from 'node:url'
import { codeOf, svcError, systemUse } from '@svc/core'
import type { TaskRun } from '@svc/core/isolation'
import type { CommandContext } from '@svc/core/contracts'
import { CommandDesk, type CommandInput } from './command-desk.ts'
import { describeCommands, importCommands } from './command-manifest.ts'
import { oclifConfig } from './command/oclif-config.ts'
import type { RunnableCommand } from './command/index.ts'
import { printError } from './command/report-error.ts'
import { exitOf, isParseError, parseMessage, USAGE } from './command/usage-error.ts'

// Runs in the process of an isolated plugin: its commands are imported here, and nowhere else.

/** Describes the commands of a plugin, or runs one; resolves with the facts or with the exit code. */
export const run: TaskRun = async (module, input, channel) => {
  const { plugin, version, command } = input as CommandInput
  const target = fileURLToPath(module)
  if (command === undefined) return describeCommands({ plugin, version, target })
  const found = (await importCommands({ target }))[command.id] as RunnableCommand | undefined
  if (typeof found?.run !== 'function') throw new TypeError(`COMMANDS has no class "${command.id}"`)
  const desk = channel.reach('desk', CommandDesk)
  const use = systemUse(channel.signal)
  const interrupted = new AbortController()
  desk.interrupted(use).then(
    () => interrupted.abort(svcError('INTERRUPTED', 'interrupted')),
    () => {}
  )
  const given: CommandContext = {
    signal: interrupted.signal,
    home: command.home,
    print: line => void process.stdout.write(`${line}\n`),
    note: line => void process.stderr.write(`${line}\n`),
    setting: (...keys) => desk.setting(keys, use),
    host: () => Promise.reject(notHere(command.id, 'the host')),
    server: () => Promise.reject(notHere(command.id, 'a server')),
    unconfigured: () => Promise.reject(notHere(command.id, 'the installed plugins')),
  }
  Object.assign(found, { id: command.id, given })
  const code: unknown = await found.run([...command.argv], await oclifConfig()).catch(asPlain)
  return typeof code === 'number' ? code : Number(process.exitCode ?? 0)
}

const notHere = (id: string, what: string) =>
  svcError(
    'COMMAND_ISOLATED',
    `the command "${id.replaceAll(':', ' ')}" asks for ${what}, which is not there in a process of its own`,
    {
      mend: 'Install the plugin with --isolation in-process --trust',
    }
  )

/** Only a code and words cross: what oclif ends a command with becomes a code or a number here, and an error with 2 is reported here. */
function asPlain(error: unknown): unknown {
  if (codeOf(error) === 'EEXIT') return exitOf(error) ?? 0
  if (isParseError(error)) throw svcError('COMMAND_LINE_INVALID', parseMessage(error))
  if (exitOf(error) !== USAGE) throw error
  printError(error)
  return USAGE
}
