import { McpAdd } from './commands/add.ts'
import { McpApprove } from './commands/approve.ts'
import { McpDisable, McpEnable } from './commands/enable.ts'
import { McpImport } from './commands/import.ts'
import { McpList } from './commands/list.ts'
import { McpLogin } from './commands/login.ts'
import { McpRemove } from './commands/remove.ts'
import { McpTest } from './commands/test.ts'
import { McpTools } from './commands/tools.ts'

export const COMMANDS = {
  'mcp:list': McpList,
  'mcp:add': McpAdd,
  'mcp:remove': McpRemove,
  'mcp:test': McpTest,
  'mcp:tools': McpTools,
  'mcp:approve': McpApprove,
  'mcp:enable': McpEnable,
  'mcp:disable': McpDisable,
  'mcp:import': McpImport,
  'mcp:login': McpLogin,
}
