import { McpAdd, McpRemove } from './commands/add-remove.ts'
import { McpDisable, McpEnable, McpLogin } from './commands/enable-login.ts'
import { McpImport } from './commands/import.ts'
import { McpList, McpTest } from './commands/list-test.ts'
import { McpApprove, McpTools } from './commands/tools.ts'

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
