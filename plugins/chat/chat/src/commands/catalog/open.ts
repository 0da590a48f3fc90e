import type { CommandContext, ServerChoice } from '@svc/core/contracts'
import type { Catalog } from './catalog.ts'
import { localCatalog } from './local.ts'
import { remoteCatalog } from './remote.ts'

/** What the server that was named or that runs has, else what a host of this process has. Throws START_FAILED, SERVER_AMBIGUOUS, URL_INVALID. */
export async function openCatalog(command: CommandContext, choice: ServerChoice): Promise<Catalog> {
  const server = await command.server(choice)
  return server ? remoteCatalog(server) : localCatalog(await command.host())
}
