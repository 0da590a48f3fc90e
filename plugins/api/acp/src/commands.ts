import { Acp } from './commands/acp.ts'

export const COMMANDS = { acp: Acp }
