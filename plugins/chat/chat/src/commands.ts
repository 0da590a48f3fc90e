import { ChatCommand } from './commands/chat.ts'
import { ProvidersList, ProvidersTest } from './commands/providers.ts'
import { ToolsCall, ToolsList, ToolsShow } from './commands/tools.ts'

export const COMMANDS = {
  chat: ChatCommand,
  'tools:list': ToolsList,
  'tools:show': ToolsShow,
  'tools:call': ToolsCall,
  'providers:list': ProvidersList,
  'providers:test': ProvidersTest,
}
