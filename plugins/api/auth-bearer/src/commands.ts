import { TokensCreate } from './commands/create.ts'
import { TokensList } from './commands/list.ts'
import { TokensRevoke } from './commands/revoke.ts'

export const COMMANDS = { 'tokens:create': TokensCreate, 'tokens:list': TokensList, 'tokens:revoke': TokensRevoke }
