import { StoreBackup } from './commands/backup.ts'
import { StoreRestore } from './commands/restore.ts'

export const COMMANDS = { 'store:backup': StoreBackup, 'store:restore': StoreRestore }
