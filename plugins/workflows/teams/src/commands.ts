import { TeamsList } from './commands/list.ts'
import { TeamsRun } from './commands/run.ts'
import { TeamsShow } from './commands/show.ts'

export const COMMANDS = { 'teams:list': TeamsList, 'teams:show': TeamsShow, 'teams:run': TeamsRun }
