import type { Hook } from '@oclif/core'
import type { SvcError } from '@svc/core'
import { curatedOwner } from './contributed.ts'
import { EMBEDDED_STORE, selectorOf } from './curated.ts'
import { commandLeftOut, commandOfEmbedded, commandUnknown, commandUnselected } from './errors.ts'

/** oclif's hook for an unknown command: throws an error that suggests a similar command. */
export const commandNotFound: Hook<'command_not_found'> = async ({ id, argv = [], config }) => {
  throw notFound(id, [...id.split(':'), ...argv], config.commandIDs)
}

/**
 * The error for an unknown command. It names the plugin if one that comes with svc has the command but is not loaded. `known`:
 * the ids of all commands.
 */
export function notFound(id: string, argv: readonly string[], known: readonly string[]): SvcError {
  const words = id.includes(':') ? id.split(':') : argv
  const owner = curatedOwner(words, known)
  if (owner === undefined) return commandUnknown(id.split(':'), argv, known)
  // store.url has selected PostgreSQL instead of the embedded store
  if (owner === EMBEDDED_STORE && known.includes('store:migrate')) return commandOfEmbedded(words)
  const selector = selectorOf(owner)
  return selector === undefined ? commandLeftOut(id.split(':')[0]!, owner) : commandUnselected(argv, owner, selector)
}
