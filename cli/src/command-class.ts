import type { Command } from '@oclif/core'
import { type CommandModule, importCommands } from './command-manifest.ts'
import { commandBroken } from './errors.ts'

/** The class of a command, with its id. Throws COMMAND_BROKEN. */
export async function commandClass(module: Pick<CommandModule, 'plugin' | 'target'>, id: string): Promise<Command.Class> {
  const words = id.replaceAll(':', ' ')
  const commands = await importCommands(module).catch((error: unknown) => {
    throw commandBroken(words, module.plugin, error)
  })
  const found = Object.hasOwn(commands, id) ? commands[id] : undefined
  if (typeof found?.run !== 'function') throw commandBroken(words, module.plugin, new TypeError(`COMMANDS has no class "${id}"`))
  return Object.assign(found, { id })
}
