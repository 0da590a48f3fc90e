import { Chat } from './commands/chat.ts'
import { ProvidersList, ProvidersTest } from './commands/providers.ts'
import { ToolsCall, ToolsList, ToolsShow } from './commands/tools.ts'

export const COMMANDS = {
  chat: Chat,
  'tools:list': ToolsList,
  'tools:show': ToolsShow,
  'tools:call': ToolsCall,
  'providers:list': ProvidersList,
  'providers:test': ProvidersTest,
}
