import type { Command } from '@oclif/core'
import { Chat } from './commands/chat.ts'
import { ConfigCheck } from './commands/config-check.ts'
import { ConfigShow } from './commands/config-show.ts'
import { contributed } from './commands/contributed.ts'
import { Doctor } from './commands/doctor.ts'
import { McpServe } from './commands/mcp-serve.ts'
import { Plugins } from './commands/plugins.ts'
import { ProvidersList } from './commands/providers-list.ts'
import { ProvidersTest } from './commands/providers-test.ts'
import { Reload } from './commands/reload.ts'
import { Serve } from './commands/serve.ts'
import { Status } from './commands/status.ts'
import { ToolsCall } from './commands/tools-call.ts'
import { ToolsList } from './commands/tools-list.ts'
import { ToolsShow } from './commands/tools-show.ts'
import { readConfigFlag } from './config-flag.ts'
import { contributedCommands } from './contributed.ts'
import { isOwn } from './summaries.ts'

const OWN = {
  chat: Chat,
  'config:check': ConfigCheck,
  'config:show': ConfigShow,
  doctor: Doctor,
  'mcp:serve': McpServe,
  plugins: Plugins,
  'providers:list': ProvidersList,
  'providers:test': ProvidersTest,
  reload: Reload,
  serve: Serve,
  status: Status,
  'tools:call': ToolsCall,
  'tools:list': ToolsList,
  'tools:show': ToolsShow,
}

const { file, argv } = readConfigFlag(process.argv.slice(2))
/** svc's own commands need no plugin's manifest: they work with a broken configuration too. */
const others = isOwn(argv) ? [] : await contributedCommands(file)

/** All commands, as oclif takes them. */
export const COMMANDS: Readonly<Record<string, Command.Class>> = {
  ...OWN,
  ...Object.fromEntries(others.map(one => [one.id, contributed(one, file)])),
}
