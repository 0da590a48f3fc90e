import type { Command } from '@oclif/core'
import { ConfigCheck } from './commands/config-check.ts'
import { ConfigSchema } from './commands/config-schema.ts'
import { ConfigShow } from './commands/config-show.ts'
import { McpServe } from './commands/mcp-serve.ts'
import { PluginsTop } from './commands/plugins-top.ts'
import { Reload } from './commands/reload.ts'
import { Serve } from './commands/serve.ts'
import { Status } from './commands/status.ts'

/** svc's own commands, as oclif takes them. */
export const COMMANDS: Readonly<Record<string, Command.Class>> = {
  'config:check': ConfigCheck,
  'config:schema': ConfigSchema,
  'config:show': ConfigShow,
  'mcp:serve': McpServe,
  'plugins:top': PluginsTop,
  reload: Reload,
  serve: Serve,
  status: Status,
}
