import { Chat } from './commands/chat.ts'
import { ProvidersList } from './commands/providers-list.ts'
import { ProvidersTest } from './commands/providers-test.ts'
import { ToolsCall } from './commands/tools-call.ts'
import { ToolsList } from './commands/tools-list.ts'
import { ToolsShow } from './commands/tools-show.ts'

export const COMMANDS = {
  chat: Chat,
  'tools:list': ToolsList,
  'tools:show': ToolsShow,
  'tools:call': ToolsCall,
  'providers:list': ProvidersList,
  'providers:test': ProvidersTest,
}
